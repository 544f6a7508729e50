package explore_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// An ear is the connection of a process' inbox. Commands pass; what the server
// says is handed on when the scheduler decides.
type ear struct {
	of     *process
	near   net.Conn // the client's, other end
	server net.Conn
	waits  [][]byte // frames not yet delivered; guarded by world.mu
	next   chan []byte
	deaf   bool // half open: what comes is lost; guarded by world.mu
	closed bool // guarded by world.mu
	acked  bool // the scheduler's own: the subscription has been acknowledged
}

// dial makes an ear. Only the inbox of a process dials.
func (p *process) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	w := p.world
	w.mu.Lock()
	refused := p.dead || p.barred
	w.mu.Unlock()
	if refused {
		return nil, &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	server, err := w.srv.Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	client, near := net.Pipe()
	e := &ear{of: p, near: near, server: server, next: make(chan []byte)}
	w.mu.Lock()
	p.ears = append(p.ears, e)
	w.mu.Unlock()
	go func() {
		_, _ = io.Copy(server, near)
		e.cut()
	}()
	go e.listen()
	go func() {
		for frame := range e.next {
			_, _ = near.Write(frame)
		}
	}()
	return client, nil
}

// cut ends the connection; whatever was under way is lost.
func (e *ear) cut() {
	e.of.world.mu.Lock()
	e.closed = true
	e.of.world.mu.Unlock()
	_ = e.near.Close()
	_ = e.server.Close()
}

func (e *ear) listen() {
	defer close(e.next)
	defer e.cut()
	w, r := e.of.world, bufio.NewReader(e.server)
	for {
		raw, word, err := readReply(r)
		if err != nil {
			return
		}
		if word != "message" && word != "subscribe" {
			e.next <- raw
			continue
		}
		w.mu.Lock()
		if !e.deaf {
			e.waits = append(e.waits, raw)
			w.notice()
		}
		w.mu.Unlock()
	}
}

// readReply reads one reply of RESP2 and says which word it begins with.
func readReply(r *bufio.Reader) (raw []byte, word string, err error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil, "", err
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(line[1:])))
	switch line[0] {
	case '$':
		body := make([]byte, max(n+2, 0))
		if _, err := io.ReadFull(r, body); err != nil {
			return nil, "", err
		}
		return append(line, body...), string(body[:max(n, 0)]), nil
	case '*':
		for i := range n {
			part, first, err := readReply(r)
			if err != nil {
				return nil, "", err
			}
			if i == 0 {
				word = first
			}
			line = append(line, part...)
		}
	}
	return line, word, nil
}

// heard returns the connections on which something waits to be delivered.
func (w *world) heard() (all []*ear) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.procs {
		if p.frozen || p.dead {
			continue
		}
		for _, e := range p.ears {
			if !e.closed && len(e.waits) > 0 {
				all = append(all, e)
			}
		}
	}
	return all
}

func (w *world) next(e *ear) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return e.waits[0]
}

// take removes the first frame that waits at e.
func (w *world) take(e *ear) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	frame := e.waits[0]
	e.waits = e.waits[1:]
	return frame
}

// payload is the text of a message frame, or the word of any other.
func payload(frame []byte) string {
	lines := strings.Split(string(frame), "\r\n")
	if len(lines) > 6 && lines[2] == "message" {
		return lines[6]
	}
	return lines[min(2, len(lines)-1)]
}
