// Package proxy is the network between a worker and the servers, with faults.
//
// A client names the server it wants in a first line, and the link asks where
// that is now: so one link serves every node of a cluster, and a client that
// dials again after a failover reaches the new primary.
package proxy

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// dialWithin bounds a dial on the loopback interface.
const dialWithin = 2 * time.Second

// A Link is one worker's network.
type Link struct {
	listener net.Listener
	resolve  func(name string) string
	wg       sync.WaitGroup
	done     chan struct{}

	mu     sync.Mutex // guards the following fields; no I/O under it
	closed bool
	conns  map[*conn]struct{}
	cuts   int
	holes  int
	bars   int           // of subscriptions
	slow   time.Duration // each way, of each chunk
	armed  []*Trap
}

// Listen starts a link. resolve says at which address a named server is now.
func Listen(resolve func(name string) string) (*Link, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &Link{listener: listener, resolve: resolve, done: make(chan struct{}), conns: map[*conn]struct{}{}}
	l.wg.Go(l.accept)
	return l, nil
}

// Addr is where [Dialer] connects to.
func (l *Link) Addr() string { return l.listener.Addr().String() }

// Close ends every connection, and waits for all that the link started.
func (l *Link) Close() {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.done)
	}
	l.mu.Unlock()
	_ = l.listener.Close()
	l.each((*conn).kill)
	l.wg.Wait()
}

// Dialer returns a dial function, for redis.Options, that goes through the link
// at addr. It asks for the server called name, or for the dialled address where
// name is empty.
func Dialer(addr, name string) func(ctx context.Context, network, target string) (net.Conn, error) {
	return func(ctx context.Context, network, target string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if name != "" {
			target = name
		}
		if _, err := fmt.Fprintf(c, "%s\n", target); err != nil {
			_ = c.Close()
			return nil, err
		}
		return c, nil
	}
}

func (l *Link) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.wg.Go(func() { l.serve(client) })
	}
}

// serve relays one connection until it ends.
func (l *Link) serve(client net.Conn) {
	c := &conn{link: l, client: client, gone: make(chan struct{})}
	if !l.admit(c) {
		reset(client)
		return
	}
	defer l.forget(c)
	_ = client.SetReadDeadline(time.Now().Add(dialWithin))
	r := bufio.NewReader(client)
	name, err := r.ReadString('\n')
	if err != nil {
		c.kill()
		return
	}
	_ = client.SetReadDeadline(time.Time{})
	server, err := net.DialTimeout("tcp", l.resolve(strings.TrimSuffix(name, "\n")), dialWithin)
	if err != nil || !c.connect(server) {
		c.kill()
		return
	}
	l.wg.Go(c.replies)
	c.requests(r)
}

func reset(c net.Conn) {
	_ = c.(*net.TCPConn).SetLinger(0)
	_ = c.Close()
}

func (l *Link) admit(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.cuts > 0 {
		return false
	}
	if l.holes > 0 {
		c.silent.Store(true)
	}
	l.conns[c] = struct{}{}
	return true
}

func (l *Link) forget(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}

func (l *Link) each(f func(*conn)) {
	l.mu.Lock()
	all := slices.Collect(maps.Keys(l.conns))
	l.mu.Unlock()
	for _, c := range all {
		f(c)
	}
}

func (l *Link) delay() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.slow == 0 {
		return 0
	}
	return time.Duration(rand.Int64N(int64(l.slow)))
}

// Cut closes every connection, and refuses new ones until heal is called.
func (l *Link) Cut() (heal func()) {
	heal = l.raise(&l.cuts)
	l.each((*conn).kill)
	return heal
}

// Hole lets nothing through until heal is called. Connections that were open
// meanwhile stay silent for good: bytes that they needed are gone.
func (l *Link) Hole() (heal func()) {
	heal = l.raise(&l.holes)
	l.each(func(c *conn) { c.silent.Store(true) })
	return heal
}

// Reset closes every connection once: a switch that was restarted.
func (l *Link) Reset() { l.each((*conn).kill) }

// HalfOpenSubscribers makes those connections silent that have subscribed.
func (l *Link) HalfOpenSubscribers() {
	l.each(func(c *conn) {
		if c.subscribed.Load() {
			c.silent.Store(true)
		}
	})
}

// Silence makes every connection silent that is open now: a firewall that has
// forgotten them. New ones work.
func (l *Link) Silence() { l.each(func(c *conn) { c.silent.Store(true) }) }

// Unsubscribe closes every connection that has subscribed, or that will until heal
// is called. Commands pass.
func (l *Link) Unsubscribe() (heal func()) {
	heal = l.raise(&l.bars)
	l.each(func(c *conn) {
		if c.subscribed.Load() {
			c.kill()
		}
	})
	return heal
}

func (l *Link) barred() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bars > 0
}

// Slow delays each chunk, either way, by up to d until heal is called.
func (l *Link) Slow(d time.Duration) (heal func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slow = max(l.slow, d)
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.slow = 0
	})
}

func (l *Link) raise(n *int) (undo func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*n++
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		*n--
	})
}
