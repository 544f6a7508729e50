package redistest_test

import (
	"errors"
	"io"
	"net"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/virtual"
)

// site is a server and a link to it.
type site struct {
	link   *redistest.Link
	direct *redis.Client // past the link
}

// everywhere runs f in a bubble and against the redis-server binary.
func everywhere(t *testing.T, f func(t *testing.T, s site)) {
	t.Run("virtual", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *redistest.Server) {
			f(t, site{redistest.NewLink(t, s.Dial), s.Client(t)})
		})
	})
	t.Run("real", func(t *testing.T) {
		r := redistest.Real(t)
		f(t, site{redistest.NewLink(t, r.Dial), r.Client(t)})
	})
}

// patience is how long a client waits for what should not come. What should come
// has that long too, so it is generous; in a bubble it costs nothing.
const patience = 500 * time.Millisecond

// client returns a client over the link that gives up soon and tries once.
func (s site) client(t *testing.T, mod ...func(*redis.Options)) *redis.Client {
	t.Helper()
	o := &redis.Options{
		Addr: "192.0.2.1:6379", Dialer: s.link.Dial, MaxRetries: -1, ReadTimeout: patience,
	}
	for _, m := range mod {
		m(o)
	}
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// await returns once key has the value want at the server, for what executes
// without an answer; it gives up in the end.
func (s site) await(t *testing.T, key string, want int) {
	t.Helper()
	for range 10_000 {
		if value(t, s.direct, key) == want {
			return
		}
	}
	t.Errorf("%s = %d at the server, want %d", key, value(t, s.direct, key), want)
}

func (s site) has(t *testing.T, key string, want int) {
	t.Helper()
	if got := value(t, s.direct, key); got != want {
		t.Errorf("%s = %d at the server, want %d", key, got, want)
	}
}

// on gives the verdict v on INCR of key, and passes the rest.
func (s site) on(key string, v redistest.Verdict) {
	s.link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
		if cmd.Is("incr") && cmd.Args[1] == key {
			return v
		}
		return redistest.Pass
	})
}

const (
	answered = "answered"
	timeout  = "timed out"
	closed   = "closed"
)

func outcomeOf(err error) string {
	var network net.Error
	switch {
	case err == nil:
		return answered
	case errors.As(err, &network) && network.Timeout():
		return timeout
	case errors.Is(err, io.EOF):
		return closed
	}
	return err.Error()
}

func TestCutClosesAndRefusesUntilHealed(t *testing.T) {
	everywhere(t, func(t *testing.T, s site) {
		c := s.client(t, func(o *redis.Options) { o.DialerRetries = 1 })
		c.Incr(t.Context(), "n")
		heal := s.link.Cut()
		if got := outcomeOf(c.Incr(t.Context(), "n").Err()); got == answered || got == timeout {
			t.Errorf("INCR on a cut connection %s", got)
		}
		dials := s.link.Dials()
		var dial *net.OpError
		if err := c.Incr(t.Context(), "n").Err(); !errors.As(err, &dial) || dial.Op != "dial" {
			t.Errorf("error = %v, want that of a dial", err)
		}
		if got := s.link.Dials(); got != dials+1 {
			t.Errorf("%d dials, want %d: a refused one counts", got, dials+1)
		}
		if got := s.link.Conns(); got != 0 {
			t.Errorf("%d connections open, want 0", got)
		}
		heal()
		if err := c.Incr(t.Context(), "n").Err(); err != nil {
			t.Errorf("INCR after heal: %v", err)
		}
		s.has(t, "n", 2)
	})
}

func TestHoleSwallowsBothWaysAndOldConnectionsStayDead(t *testing.T) {
	everywhere(t, func(t *testing.T, s site) {
		old := dialRaw(t, s.link)
		old.send(t, "incr", "n")
		old.expect(t, ":1")
		c := s.client(t)
		heal := s.link.Hole()
		if got := outcomeOf(c.Incr(t.Context(), "n").Err()); got != timeout {
			t.Errorf("INCR in a hole %s, want %s", got, timeout)
		}
		heal()
		old.send(t, "incr", "n")
		if err := c.Incr(t.Context(), "other").Err(); err != nil {
			t.Errorf("a new connection after heal: %v", err)
		}
		_ = old.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		if _, err := old.Read(make([]byte, 1)); outcomeOf(err) != timeout {
			t.Errorf("the old connection %s, want silence", outcomeOf(err))
		}
		s.has(t, "n", 1)
	})
}

func TestServerDoesNotLearnThatAClientLeftThroughAHole(t *testing.T) {
	everywhere(t, func(t *testing.T, s site) {
		c := s.client(t)
		_ = subscribe(t, c, "wake")
		s.link.Hole()
		_ = c.Close()
		if n := s.direct.Publish(t.Context(), "wake", "1").Val(); n != 1 {
			t.Errorf("PUBLISH reached %d subscribers, want 1, which the server takes for alive", n)
		}
		got := s.link.Conns()
		for i := 0; got != 0 && i < 1_000_000; i++ { // the link hears of it on a goroutine of its own
			runtime.Gosched()
			got = s.link.Conns()
		}
		if got != 0 {
			t.Errorf("%d connections open to their clients, want 0", got)
		}
	})
}

func TestHoleSubscribersSparesOtherConnections(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		everywhere(t, func(t *testing.T, s site) {
			c := s.client(t, func(o *redis.Options) { o.Protocol = protocol })
			c.Incr(t.Context(), "n")
			sub := subscribe(t, c, "wake")
			dials := s.link.Dials()
			s.link.HoleSubscribers()
			if n := s.direct.Publish(t.Context(), "wake", "1").Val(); n != 1 {
				t.Errorf("PUBLISH reached %d subscribers, want 1", n)
			}
			if msg, err := sub.ReceiveTimeout(t.Context(), 50*time.Millisecond); outcomeOf(err) != timeout {
				t.Errorf("the subscriber got %v, %v, want silence", msg, err)
			}
			if err := c.Incr(t.Context(), "n").Err(); err != nil || s.link.Dials() != dials {
				t.Errorf("INCR = %v after %d dials, want nil after none", err, s.link.Dials()-dials)
			}
			fresh := subscribe(t, s.client(t), "wake")
			s.direct.Publish(t.Context(), "wake", "2")
			if msg, err := fresh.ReceiveMessage(t.Context()); err != nil || msg.Payload != "2" {
				t.Errorf("a new subscriber got %v, %v, want 2", msg, err)
			}
		})
	}
}

func TestLatencyDelaysEachDirectionInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, srv *redistest.Server) {
		s := site{redistest.NewLink(t, srv.Dial), srv.Client(t)}
		s.link.Latency(20 * time.Millisecond)
		begin := time.Now()
		conn := dialRaw(t, s.link)
		if got, want := time.Since(begin), 40*time.Millisecond; got != want {
			t.Errorf("dialled in %v, want %v", got, want)
		}
		conn.send(t, "incr", "n")
		conn.send(t, "incr", "n")
		virtual.Sleep(20*time.Millisecond - 1)
		s.has(t, "n", 0)
		virtual.Sleep(2)
		s.has(t, "n", 2)
		conn.expect(t, ":1")
		conn.expect(t, ":2")
		if got, want := time.Since(begin), 80*time.Millisecond; got != want {
			t.Errorf("answered after %v, want %v", got, want)
		}
	})
}

func TestLatencyReachesARealServer(t *testing.T) {
	r := redistest.Real(t)
	link := redistest.NewLink(t, r.Dial)
	link.Latency(15 * time.Millisecond)
	begin := time.Now()
	if err := (site{link: link}).client(t).Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if got, least := time.Since(begin), 60*time.Millisecond; got < least {
		t.Errorf("dialled and answered in %v, want at least %v", got, least)
	}
}

func TestLinkCountsAndLogsInOrder(t *testing.T) {
	everywhere(t, func(t *testing.T, s site) {
		var judged [][]string
		last := 0
		s.link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if cmd.N != last+1 {
				t.Errorf("N = %d after %d", cmd.N, last)
			}
			last = cmd.N
			judged = append(judged, cmd.Args)
			return redistest.Pass
		})
		conn := dialRaw(t, s.link)
		conn.send(t, "INCR", "n")
		conn.expect(t, ":1")
		conn.send(t, "set", "k", "a\r\n*1\r\n$4\r\nPING\r\n")
		conn.expect(t, "+OK")
		if s.link.Conns() != 1 || s.link.Dials() != 1 {
			t.Errorf("%d connections of %d dials, want 1 of 1", s.link.Conns(), s.link.Dials())
		}
		want := [][]string{{"INCR", "n"}, {"set", "k", "a\r\n*1\r\n$4\r\nPING\r\n"}}
		if got := s.link.Log(); !slices.EqualFunc(got, want, slices.Equal) || len(judged) != 2 {
			t.Errorf("Log = %q, judged %q, want %q", got, judged, want)
		}
		if got := s.link.Commands(); got["incr"] != 1 || got["set"] != 1 || len(got) != 2 {
			t.Errorf("Commands = %v, want one incr and one set", got)
		}
	})
}

func TestClosedClientClosesItsServerConnection(t *testing.T) {
	bubble(t, func(t *testing.T, srv *redistest.Server) {
		link := redistest.NewLink(t, srv.Dial)
		conn := dialRaw(t, link)
		conn.send(t, "incr", "n")
		_ = conn.Close() // at once: the command still executes
		synctest.Wait()
		if got := srv.Direct().CurrentConnectionCount(); got != 0 {
			t.Errorf("the server has %d connections, want 0", got)
		}
		if got, _ := srv.Direct().Get("n"); got != "1" || link.Conns() != 0 {
			t.Errorf("n = %q, %d connections, want 1 and none", got, link.Conns())
		}
	})
}

func TestServerThatClosesIsSeenByTheClient(t *testing.T) {
	r := redistest.Real(t)
	conn := dialRaw(t, redistest.NewLink(t, r.Dial))
	conn.send(t, "ping")
	conn.expect(t, "+PONG")
	r.Kill()
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("error = %v, want EOF", err)
	}
}
