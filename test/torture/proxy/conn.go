package proxy

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// conn is one connection over a Link. A client sends a request, or a pipeline of
// them, when it has read the replies to those before: so what is done to a
// connection when a request passes befalls that request's reply.
type conn struct {
	link   *Link
	client net.Conn

	silent     atomic.Bool // nothing passes, either way
	mute       atomic.Bool // no reply passes
	severed    atomic.Bool // the next reply closes the connection
	subscribed atomic.Bool

	mu     sync.Mutex // guards the following fields
	server net.Conn   // nil until dialled
	dead   bool
	gone   chan struct{} // closed by kill
}

func (c *conn) connect(server net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		_ = server.Close()
		return false
	}
	c.server = server
	return true
}

// kill closes both ends.
func (c *conn) kill() {
	c.mu.Lock()
	dead, server := c.dead, c.server
	c.dead = true
	if !dead {
		close(c.gone)
	}
	c.mu.Unlock()
	if dead {
		return
	}
	reset(c.client)
	if server != nil {
		_ = server.Close()
	}
}

// pause waits. It returns false if the connection is killed meanwhile.
func (c *conn) pause(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	over := time.NewTimer(d)
	defer over.Stop()
	select {
	case <-over.C:
		return true
	case <-c.gone:
		return false
	}
}

// requests relays what the client sends. A client that leaves a silent
// connection is not noticed by the server until the link is closed.
func (c *conn) requests(r io.Reader) {
	buf := make([]byte, 64<<10)
	for {
		n, err := r.Read(buf)
		if err != nil {
			break
		}
		if !c.pause(c.link.delay()) || !c.request(buf[:n]) {
			break
		}
	}
	if c.silent.Load() {
		c.linger()
	}
	c.kill()
}

// lingers is how long the server takes the client of a silent connection for alive.
const lingers = 2 * time.Second

func (c *conn) linger() {
	over := time.NewTimer(lingers)
	defer over.Stop()
	select {
	case <-over.C:
	case <-c.gone:
	case <-c.link.done:
	}
}

func (c *conn) request(chunk []byte) bool {
	if c.silent.Load() {
		return true
	}
	if isSubscription(chunk) {
		c.subscribed.Store(true)
		if c.link.barred() {
			return false
		}
	}
	trap := c.link.judge(chunk)
	if trap != nil {
		switch trap.Fate {
		case Swallow:
			c.mute.Store(true)
		case CutReply:
			c.severed.Store(true)
		case Delay:
			if !c.pause(trap.For) {
				return false
			}
		case Late:
			c.mute.Store(true)
			c.executeLater(append([]byte(nil), chunk...), trap.For)
			return true
		}
	}
	_, err := c.server.Write(chunk)
	return err == nil
}

func isSubscription(chunk []byte) bool {
	const least = len("*2\r\n$9\r\nsubscribe")
	if len(chunk) < least {
		return false
	}
	word := string(chunk[8:min(len(chunk), 8+12)])
	return len(word) > 8 && (word[:9] == "subscribe" || word[:9] == "\nsubscrib" || word[:9] == "ssubscrib")
}

// executeLater has a request arrive when its client has long given it up, or
// sent it again.
func (c *conn) executeLater(chunk []byte, after time.Duration) {
	addr := c.server.RemoteAddr().String()
	c.link.wg.Go(func() {
		over := time.NewTimer(after)
		defer over.Stop()
		select {
		case <-over.C:
		case <-c.link.done:
			return
		}
		again, err := net.DialTimeout("tcp", addr, dialWithin)
		if err != nil {
			return // the server is down: the request is lost
		}
		defer func() { _ = again.Close() }()
		_ = again.SetDeadline(time.Now().Add(dialWithin))
		if _, err := again.Write(chunk); err == nil {
			_, _ = again.Read(make([]byte, 1)) // it has been executed, or never will be
		}
	})
}

// replies relays what the server says.
func (c *conn) replies() {
	defer func() {
		// A server that closes a silent connection is not heard either.
		if c.silent.Load() {
			c.linger()
		}
		c.kill()
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := c.server.Read(buf)
		if err != nil || c.severed.Load() {
			return
		}
		if c.silent.Load() || c.mute.Load() {
			continue
		}
		if !c.pause(c.link.delay()) {
			return
		}
		if _, err := c.client.Write(buf[:n]); err != nil {
			return
		}
	}
}
