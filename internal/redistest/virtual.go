package redistest

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// virtualAddr is an IP literal: go-redis resolves host names, and the resolver's
// process-wide state must not be touched from inside a bubble. The range is
// reserved for documentation, so nothing answers there if a Dialer is forgotten.
const virtualAddr = "192.0.2.1:6379"

// Server is a Redis that lives and ends with one test. Partition, Stall and
// KillSubscribers are for bubbles; a [Link] does as much elsewhere.
type Server struct {
	mini *miniredis.Miniredis
	srv  *server.Server
	own  *server.Peer // runs this package's own commands; its hooks are off

	// clock is held while keys age, so that no command runs between the two
	// halves of a tick. It comes before miniredis' own lock.
	clock sync.Mutex
	aged  time.Time     // bubble time up to which keys have aged
	step  time.Duration // TIME minus bubble time

	mu    sync.Mutex // protects following fields; nothing waits under it
	conns []*served  // every connection dialled since the last partition
	cut   bool
	gate  chan struct{} // non-nil while stalled; closed to resume
	fails []*failure
	blind bool   // PUBSUB NUMSUB counts nobody
	shard *Shard // nil: SSUBSCRIBE and its like are unknown
}

// served is the server's end of a connection.
type served struct {
	*end
	pubsub atomic.Bool // has been acknowledged a subscription
}

// Virtual skips t if RELOCK_TEST_VIRTUAL is 0. Then only tests that need a redis-server run, which may differ
// from server to server.
func Virtual(t testing.TB) {
	t.Helper()
	if os.Getenv(virtualEnv) == "0" {
		t.Skip("in virtual time, which needs no redis-server")
	}
}

// InBubble reports whether the caller is in a bubble, whose clock begins in 2000.
func InBubble() bool { return time.Now().Year() < 2015 }

// Start runs a Server in the calling bubble, or in real time. It ends with t.
func Start(t testing.TB) *Server {
	t.Helper()
	Virtual(t)
	m := miniredis.NewMiniRedis()
	s := &Server{mini: m, own: server.NewPeer(bufio.NewWriter(io.Discard)), aged: time.Now()}
	first, err := m.Dial() // starts the server without a listener
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	_ = first.Close()
	s.srv = m.Server()
	s.srv.SetPreHook(s.before)
	m.SetTime(s.aged)
	t.Cleanup(s.stop)
	return s
}

// stop lets stalled commands go, because Close waits for them.
func (s *Server) stop() {
	s.mu.Lock()
	gate := s.gate
	s.gate, s.cut = nil, true
	s.mu.Unlock()
	if gate != nil {
		close(gate)
	}
	s.mini.Close()
}

// before runs before every command, including those that a script calls.
func (s *Server) before(p *server.Peer, name string, args ...string) (done bool) {
	if name == "PUBSUB" && len(args) > 1 && (strings.EqualFold(args[0], "NUMSUB") || strings.EqualFold(args[0], "SHARDNUMSUB")) {
		s.mu.Lock()
		blind := s.blind
		s.mu.Unlock()
		if blind {
			p.WriteLen(2)
			p.WriteBulk(args[1])
			p.WriteInt(0)
			return true
		}
	}
	if name == "PUBSUB" && len(args) > 0 && strings.EqualFold(args[0], "SHARDNUMSUB") {
		s.mu.Lock()
		shard := s.shard
		s.mu.Unlock()
		if shard != nil {
			shard.count(p, args[1:])
			return true
		}
	}
	if p == s.own || nested(p) {
		// A script calls this command. It holds miniredis' lock, and its keys have aged already.
		return false
	}
	s.mu.Lock()
	gate := s.gate
	s.mu.Unlock()
	if gate != nil {
		<-gate
	}
	if text, ok := s.failing(append([]string{strings.ToLower(name)}, args...)); ok {
		p.WriteError(text)
		return true
	}
	s.tick()
	return false
}

// nested reports whether a script runs on p. miniredis does not export it.
func nested(p *server.Peer) bool {
	if p.Ctx == nil {
		return false
	}
	return reflect.ValueOf(p.Ctx).Elem().FieldByName("nested").Bool()
}

// tick ages the keys by the bubble time that has passed. Bubble time stands still
// while any command runs, so the age is exact.
func (s *Server) tick() {
	s.clock.Lock()
	defer s.clock.Unlock()
	s.tickLocked()
}

func (s *Server) tickLocked() {
	now := time.Now()
	elapsed := now.Sub(s.aged)
	if elapsed <= 0 {
		return
	}
	s.aged = now
	s.mini.SetTime(now.Add(s.step))
	s.mini.FastForward(elapsed)
}

// enough is a pool size at which no test waits for a connection. go-redis reuses the timers of such waits. In
// another bubble a reused timer would end the test program.
const enough = 1024

// Client returns a client of s that is closed when t ends. Its options are the defaults of go-redis, retries
// included, except for its large pool. mod changes them.
func (s *Server) Client(t testing.TB, mod ...func(*redis.Options)) *redis.Client {
	t.Helper()
	// Without notifications of maintenance: while go-redis asks for them it waits for a
	// mutex that another connection holds over its handshake, and virtual time stands still.
	quiet := &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return newClient(t, &redis.Options{Addr: virtualAddr, Dialer: s.Dial, PoolSize: enough, MaintNotificationsConfig: quiet}, mod)
}

func newClient(t testing.TB, o *redis.Options, mod []func(*redis.Options)) *redis.Client {
	for _, m := range mod {
		m(o)
	}
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Dial connects to s. It fits [redis.Options].Dialer and [NewLink].
func (s *Server) Dial(_ context.Context, network, _ string) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cut {
		return nil, refused(network)
	}
	near, far := pipe()
	conn := &served{end: far}
	s.conns = append(s.conns, conn)
	s.srv.ServeConn(conn)
	return near, nil
}

// Write notes acknowledged subscriptions. miniredis flushes after every command
// and message, so an acknowledgement begins a write.
func (c *served) Write(p []byte) (int, error) {
	if _, reply, ok := bytes.Cut(p, []byte("\r\n")); ok {
		for _, ack := range []string{"$9\r\nsubscribe\r\n", "$10\r\npsubscribe\r\n", "$10\r\nssubscribe\r\n"} {
			if bytes.HasPrefix(reply, []byte(ack)) {
				c.pubsub.Store(true)
			}
		}
	}
	return c.end.Write(p)
}
