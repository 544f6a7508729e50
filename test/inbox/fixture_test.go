package inbox_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/inbox"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/virtual"
)

const channel = "relock:inbox:me"

// network is the subscriber's way to the server, where it breaks in ways that
// the server does not see.
type network struct {
	srv     *redistest.Server
	dials   atomic.Int64
	hang    atomic.Bool  // a dial waits until its context ends
	hanging atomic.Int64 // dials that wait

	mu     sync.Mutex // protects following fields
	conns  []*conn
	deafOn string        // a connection that sends this hears no more
	lives  time.Duration // not 0: how long a connection lasts
}

// conn goes half-open when it is deaf: it sends, and what comes in is lost.
type conn struct {
	net.Conn
	deaf   atomic.Bool
	deafOn string
}

func (n *network) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	n.dials.Add(1)
	if n.hang.Load() {
		n.hanging.Add(1)
		defer n.hanging.Add(-1)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	raw, err := n.srv.Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	c := &conn{Conn: raw, deafOn: n.deafOn}
	n.conns = append(n.conns, c)
	if n.lives != 0 {
		time.AfterFunc(n.lives, func() { _ = c.Close() })
	}
	return c, nil
}

func (c *conn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if err != nil || !c.deaf.Load() {
			return n, err
		}
	}
}

func (c *conn) Write(p []byte) (int, error) {
	if c.deafOn != "" && bytes.Contains(p, []byte(c.deafOn)) {
		c.deaf.Store(true)
	}
	return c.Conn.Write(p)
}

// deafen makes every connection half-open that exists.
func (n *network) deafen() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.conns {
		c.deaf.Store(true)
	}
}

// closeAll ends every connection that exists.
func (n *network) closeAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.conns {
		_ = c.Close()
	}
}

// deafenThoseThat makes every later connection half-open once it sends cmd.
func (n *network) deafenThoseThat(cmd string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.deafOn = cmd
}

// fixture is an inbox and its server, in one bubble.
type fixture struct {
	*inbox.Inbox
	t   *testing.T
	srv *redistest.Server
	net *network
	rdb *redis.Client // the subscriber's
	pub *redis.Client

	onDeliver func(payload string) // set before the first message
	attempts  atomic.Int64         // links begun
	failures  atomic.Int64         // calls of Failed

	mu     sync.Mutex // protects following fields
	events []string   // "linked" and payloads
	ps     *redis.PubSub
}

// bubble runs f in a bubble, with the T of the bubble and an inbox that is closed
// at its end.
func bubble(t *testing.T, f func(*testing.T, *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		x := &fixture{t: t, srv: srv, net: &network{srv: srv}}
		x.rdb = srv.Client(t, func(o *redis.Options) { o.Dialer = x.net.dial })
		x.pub = srv.Client(t)
		x.Inbox = inbox.New(inbox.Config{
			Subscribe: x.subscribe,
			Channel:   channel,
			Deliver: func(payload string) {
				x.note(payload)
				if x.onDeliver != nil {
					x.onDeliver(payload)
				}
			},
			Linked:  func(bool) { x.note("linked") },
			Refused: refused,
			Failed:  func(err error) { x.failures.Add(1) },
		})
		t.Cleanup(x.Close)
		f(t, x)
	})
}

func refused(err error) bool { return transport.Classify(err) == transport.Refused }

func (x *fixture) subscribe(ctx context.Context, channels ...string) *redis.PubSub {
	x.attempts.Add(1)
	ps := x.rdb.Subscribe(ctx, channels...)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ps = ps
	return ps
}

func (x *fixture) note(event string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.events = append(x.events, event)
}

func (x *fixture) ready() {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(x.t.Context(), time.Minute)
	defer cancel()
	if err := x.Ready(ctx); err != nil {
		x.t.Fatalf("Ready = %v", err)
	}
	if !x.Up() {
		x.t.Fatal("ready but not up")
	}
}

func (x *fixture) publish(payload string) {
	x.t.Helper()
	if err := x.pub.Publish(x.t.Context(), channel, payload).Err(); err != nil {
		x.t.Fatal(err)
	}
	synctest.Wait()
}

// saw asserts what has been called so far, in order.
func (x *fixture) saw(want ...string) {
	x.t.Helper()
	synctest.Wait()
	x.mu.Lock()
	defer x.mu.Unlock()
	if !slices.Equal(x.events, want) {
		x.t.Errorf("events = %v, want %v", x.events, want)
	}
}

func (x *fixture) subscribers(want int) {
	x.t.Helper()
	got, err := x.pub.PubSubNumSub(x.t.Context(), channel).Result()
	if err != nil || got[channel] != int64(want) {
		x.t.Errorf("subscribers = %v, %v, want %d", got, err, want)
	}
}

// paced asserts that between least and most links are begun within d.
func (x *fixture) paced(d time.Duration, least, most int64) {
	x.t.Helper()
	before := x.attempts.Load()
	virtual.Sleep(d)
	if n := x.attempts.Load() - before; n < least || n > most {
		x.t.Errorf("%d links within %v, want %d to %d", n, d, least, most)
	}
}

// quiet asserts that no link is begun within d.
func (x *fixture) quiet(d time.Duration) {
	x.t.Helper()
	x.paced(d, 0, 0)
}

func wantText(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(fmt.Sprint(err), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
}
