package transport_test

import (
	"context"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/script"
)

// fault is what a link does to replies. Requests always arrive.
type fault int

const (
	none    fault = iota
	swallow       // replies vanish, the connection stays
	cut           // the connection dies at the next reply
)

// link is the way to a server in memory.
type link struct {
	srv *miniredis.Miniredis

	mu    sync.Mutex // protects following fields
	fault fault
	dials int
	gate  chan struct{} // if not nil, replies wait until it is closed
	mute  int           // this connection's replies vanish
	spare int           // after so many
}

func newLink(t *testing.T) *link {
	t.Helper()
	l := &link{srv: miniredis.NewMiniRedis()}
	t.Cleanup(l.srv.Close)
	return l
}

func (l *link) dial(context.Context, string, string) (net.Conn, error) {
	c, err := l.srv.Dial()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dials++
	return &conn{Conn: c, link: l, number: l.dials}, err
}

// silence has the replies of one connection vanish, by its number from 1, after so many that still come.
func (l *link) silence(number int, after ...int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mute = number
	if len(after) > 0 {
		l.spare = after[0]
	}
}

func (l *link) set(f fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fault = f
}

// close lets replies wait until the function it returns is called.
func (l *link) close() (open func()) {
	gate := make(chan struct{})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gate = gate
	return func() { close(gate) }
}

// pass waits where the gate is closed, and returns what becomes of a reply.
func (l *link) pass(number int) fault {
	l.mu.Lock()
	gate := l.gate
	l.mu.Unlock()
	if gate != nil {
		<-gate
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if number == l.mute {
		if l.spare == 0 {
			return swallow
		}
		l.spare--
	}
	return l.fault
}

func (l *link) dialled() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dials
}

// options are go-redis' defaults, its three retries among them.
func (l *link) options() *redis.Options {
	// An IP literal: resolving a name would leave the bubble.
	return &redis.Options{Addr: "192.0.2.1:6379", Dialer: l.dial}
}

func (l *link) client(t *testing.T, change ...func(*redis.Options)) *redis.Client {
	t.Helper()
	opt := l.options()
	for _, f := range change {
		f(opt)
	}
	rdb := redis.NewClient(opt)
	t.Cleanup(func() { _ = rdb.Close() })
	// So that the first fault hits a script and no handshake.
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	return rdb
}

// wrapped is a client that is more than its options: all that is known of it is
// what it can do, so its commands go on connections of its own choice.
type wrapped struct{ *redis.Client }

// count returns how often incr ran for key.
func (l *link) count(t *testing.T, key string) int {
	t.Helper()
	if !l.srv.Exists(key) {
		return 0
	}
	text, err := l.srv.Get(key)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// conn is the client's end of a connection.
type conn struct {
	net.Conn
	link   *link
	number int
}

func (c *conn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if err != nil {
			return n, err
		}
		switch c.link.pass(c.number) {
		case swallow:
			continue
		case cut:
			_ = c.Close()
			return 0, io.EOF
		}
		return n, nil
	}
}

var (
	incr  = load("incr", `return {redis.call('incr', KEYS[1]), ARGV[1]}`)
	plain = load("plain", `return redis.call('incr', KEYS[1])`)
	fails = load("fails", `return redis.error_reply('SORRY not today')`)
	empty = load("empty", `return nil`)
)

func load(name, source string) *script.Script {
	return script.MustLoad(fstest.MapFS{name + ".lua": {Data: []byte(source)}}, name)
}
