package transport_test

import (
	"context"
	"errors"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/virtual"
)

func TestCancelledCallReturnsAtOnceAndIsAwaited(t *testing.T) {
	bothWays(t, func(t *testing.T, do way) {
		l := newLink(t)
		tr := newTransport(t, wrapped{l.client(t)})
		l.set(swallow)
		cause := errors.New("user left")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(cause) })
		begin := time.Now()
		_, err := do(ctx, tr, time.Minute, call("k"))
		if took := time.Since(begin); took != time.Second {
			t.Errorf("returned after %v, want 1s", took)
		}
		if !errors.Is(err, context.Canceled) || !errors.Is(err, cause) || errors.Is(err, transport.ErrNoReply) {
			t.Errorf("error %v, want context canceled and its cause", err)
		}
		if got := transport.Classify(err); got != transport.Unknown {
			t.Errorf("outcome %v, want unknown", got)
		}
		if got := tr.Outstanding(); got != 1 {
			t.Errorf("%d calls outstanding, want 1", got)
		}
		tr.Wait()
		if got := tr.Outstanding(); got != 0 {
			t.Errorf("%d calls outstanding after Wait, want 0", got)
		}
		if took := time.Since(begin); took <= time.Second {
			t.Error("Wait did not wait for the client's read timeout")
		}
	})
}

func TestTimeoutIsErrNoReplyAndNotTheContexts(t *testing.T) {
	for name, row := range map[string]struct {
		ctx     func(t *testing.T) context.Context
		ownStop bool
	}{
		"background":               {func(*testing.T) context.Context { return context.Background() }, false},
		"cancellable":              {(*testing.T).Context, false},
		"background, own timeout":  {func(*testing.T) context.Context { return context.Background() }, true},
		"cancellable, own timeout": {(*testing.T).Context, true},
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, do way) {
				l := newLink(t)
				tr := newTransport(t, l.client(t, func(o *redis.Options) { o.ContextTimeoutEnabled = row.ownStop }))
				l.set(swallow)
				begin := time.Now()
				_, err := do(row.ctx(t), tr, 700*time.Millisecond, call("k"))
				if took := time.Since(begin); took != 700*time.Millisecond {
					t.Errorf("returned after %v, want 700ms", took)
				}
				if !errors.Is(err, transport.ErrNoReply) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
					t.Errorf("error %v, want ErrNoReply and no context's", err)
				}
				if got := transport.Classify(err); got != transport.Unknown {
					t.Errorf("outcome %v, want unknown", got)
				}
				tr.Wait()
			})
		})
	}
}

func TestReplyThatIsThereWinsOverAnEndedContext(t *testing.T) {
	bothWays(t, func(t *testing.T, do way) {
		rdb := newLink(t).client(t)
		tr := newTransport(t, wrapped{rdb})
		for range 20 { // a select between the two would take either
			ctx := &endsWithTheReply{Context: t.Context()}
			rdb.AddHook(after(func() { ctx.over.Store(true) }))
			if _, err := do(ctx, tr, time.Second, call("k")); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// endsWithTheReply is a context whose end is seen when the reply is there.
type endsWithTheReply struct {
	context.Context
	over atomic.Bool
}

func (c *endsWithTheReply) Done() <-chan struct{} {
	synctest.Wait() // until the call's goroutine has ended
	done := make(chan struct{})
	close(done)
	return done
}

func (c *endsWithTheReply) Err() error {
	if c.over.Load() {
		return context.Canceled
	}
	return nil
}

func TestDialersOwnTimeoutIsNotTheContexts(t *testing.T) {
	bothWays(t, func(t *testing.T, do way) {
		rdb := redis.NewClient(&redis.Options{
			Addr: "192.0.2.1:6379",
			Dialer: func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: context.DeadlineExceeded}
			},
		})
		defer rdb.Close()
		_, err := do(t.Context(), newTransport(t, rdb), time.Minute, call("k"))
		if err == nil || errors.Is(err, context.DeadlineExceeded) || transport.Classify(err) != transport.NotExecuted {
			t.Errorf("error %v, want not executed and no context's", err)
		}
	})
}

func TestEndedContextSendsNothing(t *testing.T) {
	bothWays(t, func(t *testing.T, do way) {
		l := newLink(t)
		tr := newTransport(t, l.client(t))
		ctx, cancel := context.WithTimeout(t.Context(), 0)
		defer cancel()
		_, err := do(ctx, tr, time.Second, call("k"))
		if !errors.Is(err, context.DeadlineExceeded) || transport.Classify(err) != transport.NotExecuted {
			t.Errorf("error %v, want the context's, not executed", err)
		}
		tr.Wait()
		if got := l.count(t, "k"); got != 0 {
			t.Errorf("script ran %d times", got)
		}
	})
}

// Not in a bubble: go-redis keeps the timers of those who wait for a
// connection in a pool of the process, where the next bubble would find them.
func TestCallThatWaitsForAConnectionIsNotSentOnceItsCallerLeft(t *testing.T) {
	for name, do := range ways {
		t.Run(name, func(t *testing.T) {
			l := newLink(t)
			rdb := l.client(t, func(o *redis.Options) { o.PoolSize, o.PipelinePoolSize = 1, -1 })
			tr := newTransport(t, wrapped{rdb})
			open := l.close()
			first := make(chan error, 1)
			go func() {
				_, err := do(context.Background(), tr, time.Minute, call("first"))
				first <- err
			}()
			await(t, func() bool { return rdb.PoolStats().IdleConns == 0 })

			ctx, cancel := context.WithCancel(t.Context())
			second := make(chan error, 1)
			go func() {
				_, err := do(ctx, tr, time.Minute, call("second"))
				second <- err
			}()
			await(t, func() bool { return rdb.PoolStats().PendingRequests == 1 })
			cancel()
			if err := <-second; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			await(t, func() bool { return tr.Outstanding() == 1 }) // the first
			open()
			if err := <-first; err != nil {
				t.Error(err)
			}
			if got := l.count(t, "second"); got != 0 {
				t.Errorf("script ran %d times after its caller left", got)
			}
		})
	}
}

// await spins until ok, for what gives no other sign.
func await(t *testing.T, ok func() bool) {
	t.Helper()
	for begin := time.Now(); !ok(); runtime.Gosched() {
		if time.Since(begin) > 20*time.Second {
			t.Error("waited in vain")
			return
		}
	}
}

func TestTextIsNotSentOnceTheCallerLeft(t *testing.T) {
	bothWays(t, func(t *testing.T, do way) {
		l := newLink(t)
		rdb := l.client(t)
		ctx, cancel := context.WithCancel(t.Context())
		rdb.AddHook(after(func() { // NOSCRIPT is here, the caller is gone
			cancel()
			synctest.Wait()
		}))
		tr := newTransport(t, rdb)
		if _, err := do(ctx, tr, time.Second, call("k")); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want context canceled", err)
		}
		tr.Wait()
		if got := l.count(t, "k"); got != 0 {
			t.Errorf("script ran %d times after its caller left", got)
		}
	})
}

func TestCallersDeadlineDoesNotCostTheConnection(t *testing.T) {
	bothWays(t, func(t *testing.T, do way) {
		l := newLink(t)
		tr := newTransport(t, wrapped{l.client(t, func(o *redis.Options) {
			o.ContextTimeoutEnabled, o.PipelinePoolSize = true, -1
		})})
		before := l.dialled()
		l.set(swallow)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := do(ctx, tr, 3*time.Second, call("k"))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want the context's", err)
		}
		virtual.Sleep(time.Second)
		if tr.Outstanding() != 1 {
			t.Error("the caller's deadline ended the read")
		}
		tr.Wait()
		if got := l.dialled(); got != before {
			t.Errorf("%d connections dialled, want none", got-before)
		}
	})
}

type traceKey struct{}

func TestHooksSeeTheValuesOfTheCallersContext(t *testing.T) {
	bothWays(t, func(t *testing.T, do way) {
		rdb := newLink(t).client(t)
		var sent recorder
		rdb.AddHook(&sent)
		ctx := context.WithValue(t.Context(), traceKey{}, "span")
		if _, err := do(ctx, newTransport(t, rdb), time.Second, call("k")); err != nil {
			t.Fatal(err)
		}
		if len(sent.values) == 0 || sent.values[0] != "span" {
			t.Errorf("values %v, want span", sent.values)
		}
	})
}
