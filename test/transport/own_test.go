package transport_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/virtual"
)

// during returns how many goroutines of the Transport's are at work when a call
// has its reply, or -1 where the hook does not see it.
func during(rdb *redis.Client) (seen *atomic.Int64, over func(redis.UniversalClient) *transport.Transport) {
	var tr atomic.Pointer[transport.Transport]
	seen = new(atomic.Int64)
	seen.Store(-1)
	rdb.AddHook(after(func() {
		if tr := tr.Load(); tr != nil {
			seen.Store(int64(tr.Outstanding()))
		}
	}))
	return seen, func(c redis.UniversalClient) *transport.Transport {
		tr.Store(transport.New(c))
		return tr.Load()
	}
}

// Fails when a call that could run on its caller's goroutine is given to another.
func TestWhoIsAloneRunsTheCommandItself(t *testing.T) {
	limited := func(o *redis.Options) { o.Limiter = unlimited{} }
	sentinel := func(o *redis.Options) {
		o.Addr = "FailoverClient"
		o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled} // looks the name up
	}
	as := func(c *redis.Client) redis.UniversalClient { return c }
	for name, row := range map[string]struct {
		change func(*redis.Options)
		client func(*redis.Client) redis.UniversalClient
		want   int64
	}{
		"options as they are":  {func(*redis.Options) {}, as, 0},
		"no timeouts":          {func(o *redis.Options) { o.ReadTimeout, o.WriteTimeout = -1, -1 }, as, 0},
		"no deadlines at all":  {func(o *redis.Options) { o.ReadTimeout, o.WriteTimeout = -2, -2 }, as, 0},
		"one that is wrapped":  {func(*redis.Options) {}, func(c *redis.Client) redis.UniversalClient { return wrapped{c} }, 1},
		"one with a limiter":   {limited, as, 1},
		"a primary's, changes": {sentinel, as, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rdb := newLink(t).client(t, row.change)
				seen, over := during(rdb)
				tr := over(row.client(rdb))
				defer tr.Wait()
				for range 3 {
					seen.Store(-1) // a hook that has seen one call sees the next
					if _, err := tr.Do(t.Context(), time.Minute, call("k")); err != nil {
						t.Fatal(err)
					}
					if seen.Load() != row.want {
						t.Errorf("%d goroutines during the call, want %d", seen.Load(), row.want)
					}
					synctest.Wait() // the goroutine that has answered is about to end
				}
			})
		})
	}
}

type unlimited struct{}

func (unlimited) Allow() error       { return nil }
func (unlimited) ReportResult(error) {}

// Fails when nothing interrupts what the caller reads, or something is left.
func TestCallOfWhoIsAloneEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t)
		tr := newTransport(t, l.client(t))
		if _, err := tr.Do(t.Context(), time.Minute, call("k")); err != nil {
			t.Fatal(err)
		}
		l.set(swallow)
		cause := errors.New("user left")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(cause) })
		begin := time.Now()
		_, err := tr.Do(ctx, time.Minute, call("k"))
		if took := time.Since(begin); took != time.Second {
			t.Errorf("returned after %v, want 1s", took)
		}
		if !errors.Is(err, context.Canceled) || !errors.Is(err, cause) || errors.Is(err, transport.ErrNoReply) {
			t.Errorf("error %v, want context canceled and its cause", err)
		}
		if got := transport.Classify(err); got != transport.Unknown {
			t.Errorf("outcome %v, want unknown", got)
		}
		synctest.Wait() // until the stream is closed
		if got := tr.Outstanding(); got != 0 {
			t.Errorf("%d calls outstanding, want none", got)
		}
		if got := l.count(t, "k"); got != 2 {
			t.Errorf("script ran %d times, want 2", got)
		}
	})
}

// Fails when a dialler that does not return keeps the call.
func TestCallOfWhoIsAloneEndsWhileItDials(t *testing.T) {
	for name, row := range map[string]struct{ cancel, timeout time.Duration }{
		"context": {time.Second, time.Minute},
		"timeout": {time.Minute, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLink(t)
				hangs := make(chan struct{})
				var slow bool
				tr := newTransport(t, l.client(t, func(o *redis.Options) {
					o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
						if slow {
							<-hangs
						}
						return l.dial(ctx, network, addr)
					}
				}))
				defer synctest.Wait()
				defer close(hangs)
				slow = true
				ctx, cancel := context.WithTimeout(t.Context(), row.cancel)
				defer cancel()
				begin := time.Now()
				_, err := tr.Do(ctx, row.timeout, call("k"))
				if took := time.Since(begin); took != time.Second || err == nil {
					t.Errorf("returned %v after %v, want an error after 1s", err, took)
				}
				if got := l.count(t, "k"); got != 0 {
					t.Errorf("script ran %d times", got)
				}
			})
		})
	}
}

// Fails when each call to a server that is silent dials, or when none is sent by
// its caller again.
func TestServerThatIsSlowIsAskedByOthersUntilItAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t)
		rdb := l.client(t)
		seen, over := during(rdb)
		tr := over(rdb)
		defer tr.Wait()
		do := func() error {
			_, err := tr.Do(t.Context(), time.Second, call("k"))
			return err
		}
		if err := do(); err != nil || seen.Load() != 0 {
			t.Fatalf("%v, with %d goroutines", err, seen.Load())
		}
		l.set(swallow)
		if err := do(); !errors.Is(err, transport.ErrNoReply) || seen.Load() != 0 {
			t.Fatalf("%v, with %d goroutines", err, seen.Load())
		}
		for range 3 {
			if err := do(); !errors.Is(err, transport.ErrNoReply) {
				t.Fatal(err)
			}
			if tr.Outstanding() == 0 {
				t.Error("a silent server was asked by the caller itself")
			}
		}
		l.set(none)
		virtual.Sleep(time.Minute)
		if err := rdb.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		for _, want := range []int64{1, 0} {
			if err := do(); err != nil || seen.Load() != want {
				t.Errorf("%v, with %d goroutines, want %d", err, seen.Load(), want)
			}
			synctest.Wait() // for the goroutine that has answered
		}
	})
}

// Fails when a connection of the Transport's own outlives its client or Wait.
func TestOwnConnectionsEndWithTheClientAndWithWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t)
		rdb := l.client(t)
		tr := transport.New(rdb)
		if _, err := tr.Do(t.Context(), time.Minute, call("k")); err != nil {
			t.Fatal(err)
		}
		if got := l.srv.CurrentConnectionCount(); got != 2 {
			t.Fatalf("%d connections, want one of the client's and one beside", got)
		}
		_ = rdb.Close()
		if _, err := tr.Do(t.Context(), time.Minute, call("k")); err == nil || transport.Classify(err) != transport.Closed {
			t.Errorf("error %v, want closed", err)
		}
		tr.Wait()
		synctest.Wait()
		if got := l.srv.CurrentConnectionCount(); got != 0 {
			t.Errorf("%d connections are left", got)
		}
	})
}

// Fails when a connection is lost with a panic.
func TestHookThatPanicsTakesNothingAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t)
		rdb := l.client(t)
		panics := false
		rdb.AddHook(after(func() {
			if panics {
				panic("hook")
			}
		}))
		seen, over := during(rdb)
		tr := over(rdb)
		defer tr.Wait()
		panics = true
		for range 4 {
			func() {
				defer func() { _ = recover() }()
				_, _ = tr.Do(t.Context(), time.Minute, call("k"))
				t.Error("no panic")
			}()
		}
		panics = false
		if _, err := tr.Do(t.Context(), time.Minute, call("k")); err != nil || seen.Load() != 0 {
			t.Errorf("%v, with %d goroutines", err, seen.Load())
		}
	})
}
