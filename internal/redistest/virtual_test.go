package redistest_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/virtual"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func bubble(t *testing.T, f func(t *testing.T, s *redistest.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, redistest.Start(t)) })
}

// once switches the retries of go-redis off, so that a test sees each outcome.
func once(o *redis.Options) { o.MaxRetries = -1 }

// subscribe returns a subscription that the server has acknowledged.
func subscribe(t *testing.T, c *redis.Client, channel string) *redis.PubSub {
	t.Helper()
	sub := c.Subscribe(t.Context(), channel)
	t.Cleanup(func() { _ = sub.Close() })
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatalf("subscribe: %v", err)
	}
	return sub
}

func value(t *testing.T, c *redis.Client, key string) int {
	t.Helper()
	n, err := c.Get(t.Context(), key).Int()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatalf("GET %s: %v", key, err)
	}
	return n
}

func TestKeyLivesExactlyItsTTL(t *testing.T) {
	const ttl = 30 * time.Second
	bubble(t, func(t *testing.T, s *redistest.Server) {
		c := s.Client(t)
		c.Set(t.Context(), "k", "me", ttl)
		virtual.Sleep(ttl - time.Nanosecond)
		if c.Exists(t.Context(), "k").Val() != 1 || !s.Direct().Exists("k") {
			t.Error("the key ended before its TTL")
		}
		virtual.Sleep(time.Nanosecond)
		if s.Direct().Exists("k") || c.Exists(t.Context(), "k").Val() != 0 {
			t.Error("the key outlived its TTL")
		}
	})
}

func TestScriptSeesAgedKeysAndBubbleTime(t *testing.T) {
	bubble(t, func(t *testing.T, s *redistest.Server) {
		c := s.Client(t)
		c.Set(t.Context(), "k", "me", time.Minute)
		virtual.Sleep(10 * time.Second)
		const script = `local t = redis.call('time') return {redis.call('pttl', KEYS[1]), t[1]}`
		got, err := c.Eval(t.Context(), script, []string{"k"}).Slice()
		if err != nil {
			t.Fatal(err)
		}
		if got[0] != int64(50_000) || got[1] != unix(time.Now()) {
			t.Errorf("PTTL, TIME = %v, want 50000, %s", got, unix(time.Now()))
		}
	})
}

func unix(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

func TestReleaseWakesSubscriberAtTheInstant(t *testing.T) {
	bubble(t, func(t *testing.T, s *redistest.Server) {
		sub := subscribe(t, s.Client(t), "wake")
		begin := time.Now()
		woken := make(chan time.Duration, 1)
		go func() {
			if _, err := sub.ReceiveMessage(t.Context()); err == nil {
				woken <- time.Since(begin)
			}
		}()
		virtual.Sleep(7 * time.Second)
		s.Client(t).Publish(t.Context(), "wake", "1")
		if got, want := <-woken, 7*time.Second; got != want {
			t.Errorf("woken after %v, want %v", got, want)
		}
	})
}

func TestIdleSubscriberDoesNotStopTheServer(t *testing.T) {
	bubble(t, func(t *testing.T, s *redistest.Server) {
		_ = subscribe(t, s.Client(t), "flood") // never reads
		c := s.Client(t)
		for range 200 {
			if n := c.Publish(t.Context(), "flood", strings.Repeat("x", 64<<10)).Val(); n != 1 {
				t.Fatalf("PUBLISH reached %d subscribers, want 1", n)
			}
		}
	})
}

func TestPartitionCutsAndHeals(t *testing.T) {
	bubble(t, func(t *testing.T, s *redistest.Server) {
		c := s.Client(t, once)
		c.Set(t.Context(), "k", "1", 0)
		heal := s.Partition()
		var dial *net.OpError
		if err := c.Get(t.Context(), "k").Err(); err == nil {
			t.Error("GET crossed a partition")
		}
		err := c.Get(t.Context(), "k").Err()
		if !errors.As(err, &dial) || dial.Op != "dial" || !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("error = %v, want a refused dial", err)
		}
		heal()
		if got := value(t, c, "k"); got != 1 {
			t.Errorf("after heal k = %d, want 1", got)
		}
	})
}

func TestStalledCommandLandsAfterItsClientGaveUp(t *testing.T) {
	bubble(t, func(t *testing.T, s *redistest.Server) {
		c := s.Client(t, once)
		c.Ping(t.Context())
		resume := s.Stall()
		if err := c.Incr(t.Context(), "n").Err(); err == nil {
			t.Fatal("INCR answered by a stalled server")
		}
		if s.Direct().Exists("n") {
			t.Error("INCR executed while stalled")
		}
		resume()
		resume()
		synctest.Wait()
		if got := value(t, c, "n"); got != 1 {
			t.Errorf("n = %d after resume, want 1", got)
		}
	})
}

func TestServerEndsWhileStalled(t *testing.T) {
	bubble(t, func(t *testing.T, s *redistest.Server) {
		conn, err := s.Dial(t.Context(), "tcp", "")
		if err != nil {
			t.Fatal(err)
		}
		_ = s.Stall()
		if _, err := conn.Write([]byte("*1\r\n$4\r\nPING\r\n")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
	})
}

func TestStepClockMovesTimeAlone(t *testing.T) {
	for _, d := range []time.Duration{time.Hour, -time.Hour} {
		bubble(t, func(t *testing.T, s *redistest.Server) {
			c := s.Client(t)
			c.Set(t.Context(), "k", "me", time.Minute)
			s.StepClock(d)
			virtual.Sleep(10 * time.Second)
			if got, want := c.Time(t.Context()).Val(), time.Now().Add(d); !got.Equal(want) {
				t.Errorf("TIME = %v, want %v", got, want)
			}
			if got, want := c.PTTL(t.Context(), "k").Val(), 50*time.Second; got != want {
				t.Errorf("PTTL = %v, want %v", got, want)
			}
		})
	}
}

func TestJumpClockMovesEndsOfKeys(t *testing.T) {
	bubble(t, func(t *testing.T, s *redistest.Server) {
		c := s.Client(t)
		c.Set(t.Context(), "k", "me", time.Minute)
		s.JumpClock(-20 * time.Second)
		if got, want := c.PTTL(t.Context(), "k").Val(), 80*time.Second; got != want {
			t.Errorf("PTTL = %v after a jump back, want %v", got, want)
		}
		s.JumpClock(80 * time.Second)
		if c.Exists(t.Context(), "k").Val() != 0 {
			t.Error("the key outlived a jump past its end")
		}
		if got, want := c.Time(t.Context()).Val(), time.Now().Add(time.Minute); !got.Equal(want) {
			t.Errorf("TIME = %v, want %v", got, want)
		}
	})
}

func TestFailNextAnswersInsteadOfExecuting(t *testing.T) {
	bubble(t, func(t *testing.T, s *redistest.Server) {
		c := s.Client(t, once)
		isIncr := func(args []string) bool { return args[0] == "incr" && args[1] == "n" }
		s.FailNext(2, "LOADING Redis is loading", isIncr)
		for range 2 {
			if err := c.Incr(t.Context(), "n").Err(); !redis.HasErrorPrefix(err, "LOADING") {
				t.Errorf("error = %v, want LOADING", err)
			}
		}
		if err := c.Incr(t.Context(), "n").Err(); err != nil {
			t.Errorf("third INCR: %v", err)
		}
		if got := value(t, c, "n"); got != 1 {
			t.Errorf("n = %d, want 1", got)
		}
	})
}

func TestFailNextLeavesConnectionSetUpAndScriptsAlone(t *testing.T) {
	bubble(t, func(t *testing.T, s *redistest.Server) {
		isIncr := func(args []string) bool { return args[0] == "incr" }
		s.FailNext(1, "TRYAGAIN nested", isIncr)
		c := s.Client(t, once)
		if n, err := c.Eval(t.Context(), `return redis.call('incr', KEYS[1])`, []string{"n"}).Int(); n != 1 || err != nil {
			t.Errorf("INCR in a script = %d, %v, want 1, nil", n, err)
		}
		s.FailNext(1, "TRYAGAIN any", nil)
		fresh := s.Client(t, once)
		if err := fresh.Get(t.Context(), "n").Err(); !redis.HasErrorPrefix(err, "TRYAGAIN") {
			t.Errorf("error of the first GET = %v, want TRYAGAIN", err)
		}
	})
}

func TestFlushScriptsForgetsScripts(t *testing.T) {
	bubble(t, func(t *testing.T, s *redistest.Server) {
		c := s.Client(t, once)
		sha := c.ScriptLoad(t.Context(), "return 1").Val()
		s.FlushScripts()
		if err := c.EvalSha(t.Context(), sha, nil).Err(); !redis.HasErrorPrefix(err, "NOSCRIPT") {
			t.Errorf("error = %v, want NOSCRIPT", err)
		}
	})
}

func TestFlushScriptsPassesByStallsAndFailures(t *testing.T) {
	bubble(t, func(t *testing.T, s *redistest.Server) {
		c := s.Client(t, once)
		sha := c.ScriptLoad(t.Context(), "return 1").Val()
		s.FailNext(1, "LOADING any", nil)
		resume := s.Stall()
		s.FlushScripts()
		resume()
		if err := c.EvalSha(t.Context(), sha, nil).Err(); !redis.HasErrorPrefix(err, "LOADING") {
			t.Errorf("error = %v, want the LOADING that FlushScripts left", err)
		}
		if err := c.EvalSha(t.Context(), sha, nil).Err(); !redis.HasErrorPrefix(err, "NOSCRIPT") {
			t.Errorf("error = %v, want NOSCRIPT", err)
		}
	})
}

func TestFlushAllRemovesKeys(t *testing.T) {
	bubble(t, func(t *testing.T, s *redistest.Server) {
		c := s.Client(t)
		c.Set(t.Context(), "k", "1", 0)
		s.FlushAll()
		if n := c.DBSize(t.Context()).Val(); n != 0 {
			t.Errorf("%d keys left, want 0", n)
		}
	})
}

func TestKillSubscribersSparesOtherConnections(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		bubble(t, func(t *testing.T, s *redistest.Server) {
			dials := 0
			c := s.Client(t, once, func(o *redis.Options) {
				o.Protocol = protocol
				o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
					dials++
					return s.Dial(ctx, network, addr)
				}
			})
			c.Ping(t.Context())
			sub := subscribe(t, c, "wake")
			s.KillSubscribers()
			if _, err := sub.Receive(t.Context()); err == nil {
				t.Error("the subscriber's connection is alive")
			}
			before := dials
			if err := c.Ping(t.Context()).Err(); err != nil || dials != before {
				t.Errorf("PING = %v after %d dials; the command connection should have survived", err, dials-before)
			}
		})
	}
}
