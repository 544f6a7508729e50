package deploy_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
)

// A pair is a primary and its replica, with a network between the two.
type pair struct {
	t                *testing.T
	primary, replica *redistest.RealServer
	wire             *wire
	admin            *redis.Client // of the replica
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{t: t}
	quick := []string{"--repl-diskless-sync-delay", "0", "--repl-timeout", "60"}
	p.primary = redistest.Real(t, quick...)
	p.wire = newWire(t, p.primary.Addr())
	host, port, err := net.SplitHostPort(p.wire.addr())
	if err != nil {
		t.Fatal(err)
	}
	p.replica = redistest.Real(t, append(quick, "--replicaof", host+" "+port)...)
	p.admin = p.replica.Client(t)
	p.follows()
	return p
}

// follows returns when the replica acknowledges what the primary writes. WAIT also
// counts a replica that has just come and owes an answer to nothing: the next write
// has none for up to a second, on newer servers more often. So two writes have to be.
func (p *pair) follows() {
	p.t.Helper()
	rdb := p.primary.Client(p.t)
	defer func() { _ = rdb.Close() }()
	acked := 0
	p.eventually("the replica follows", func() bool {
		var wait *redis.Cmd
		_, err := rdb.Pipelined(p.t.Context(), func(pipe redis.Pipeliner) error {
			pipe.Set(p.t.Context(), "replicated", 1, 0)
			wait = pipe.Do(p.t.Context(), "wait", 1, 100)
			return nil
		})
		if err == nil && wait.Val() == int64(1) {
			acked++
		}
		return acked == 2
	})
}

func (p *pair) eventually(what string, is func() bool) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 20*time.Second)
	defer cancel()
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	for !is() {
		select {
		case <-again.C:
		case <-ctx.Done():
			p.t.Fatalf("not within 20 s: %s", what)
		}
	}
}

// promote makes the replica a primary of its own.
func (p *pair) promote() {
	p.t.Helper()
	if err := p.admin.Do(p.t.Context(), "replicaof", "no", "one").Err(); err != nil {
		p.t.Fatal(err)
	}
}

// client returns a process that uses one of the servers. Each command goes out
// on the connection that has been idle longest, so none follows another by chance.
func (p *pair) client(srv *redistest.RealServer, opts ...relock.Option) *relock.Client {
	p.t.Helper()
	rdb := srv.Client(p.t, func(o *redis.Options) { o.PoolFIFO, o.MinIdleConns = true, 4 })
	p.eventually("idle connections", func() bool { return rdb.PoolStats().IdleConns >= 4 })
	for range 8 {
		if err := rdb.Set(p.t.Context(), "touched", 1, 0).Err(); err != nil && !strings.HasPrefix(err.Error(), "READONLY") {
			p.t.Fatal(err)
		}
	}
	c, err := relock.New(rdb, opts...)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = c.Close() })
	return c
}

// free says whether nobody holds l.
func (p *pair) free(l *relock.Lock) bool {
	info, err := l.Info(p.t.Context())
	return err == nil && len(info.Holders) == 0 && info.Waiters == 0
}

// A wire carries TCP connections to a server until it is cut: then nothing
// arrives, and neither end hears that.
type wire struct {
	listener net.Listener
	to       string
	wg       sync.WaitGroup

	mu    sync.Mutex // guards the following fields
	cut   bool
	conns []net.Conn
}

func newWire(t *testing.T, to string) *wire {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{listener: l, to: to}
	w.wg.Go(w.serve)
	t.Cleanup(w.close)
	return w
}

func (w *wire) addr() string { return w.listener.Addr().String() }

func (w *wire) serve() {
	for {
		near, err := w.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", w.to)
		if err != nil {
			_ = near.Close()
			continue
		}
		w.mu.Lock()
		w.conns = append(w.conns, near, far)
		w.mu.Unlock()
		w.wg.Go(func() { w.carry(far, near) })
		w.wg.Go(func() { w.carry(near, far) })
	}
}

func (w *wire) carry(to io.WriteCloser, from io.ReadCloser) {
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		if n > 0 && !w.isCut() {
			_, _ = to.Write(b[:n])
		}
		if err != nil {
			if !w.isCut() {
				_ = to.Close()
			}
			return
		}
	}
}

func (w *wire) isCut() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cut
}

func (w *wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
}

func (w *wire) close() {
	_ = w.listener.Close()
	w.mu.Lock()
	conns := w.conns
	w.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
	w.wg.Wait()
}

// acquire is for the tests whose replicas have little time: on a busy machine
// that may not be enough at first.
func (p *pair) acquire(l *relock.Lock) (h *relock.Hold) {
	p.t.Helper()
	p.eventually("replicas acknowledge in time", func() bool {
		var err error
		h, err = l.Acquire(p.t.Context())
		if err != nil && !errors.Is(err, relock.ErrReplicas) {
			p.t.Fatal(err)
		}
		return err == nil
	})
	return h
}
