package inbox_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/virtual"
)

func TestUnreachableServerIsDialledAtAPace(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		x.ready()
		heal := x.srv.Partition()
		virtual.Sleep(20 * time.Second)
		x.paced(time.Minute, 55, 121)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := x.Ready(ctx)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Ready = %v, want the end of ctx", err)
		}
		wantText(t, x.Down(), "refused")
		heal()
		x.ready()
		x.publish("m1")
		x.saw("linked", "linked", "m1")
	})
}

func TestLinksThatDieYoungAreMadeAtAPace(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		x.net.lives = 10 * time.Millisecond
		x.ready()
		virtual.Sleep(20 * time.Second)
		x.paced(time.Minute, 55, 121)
	})
}

func TestReadyObeysContextWhileServerIsStalled(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		resume := x.srv.Stall()
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		if err := x.Ready(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Ready = %v, want the end of ctx", err)
		}
		if d := time.Since(begin); d != 30*time.Millisecond {
			t.Errorf("Ready returned after %v", d)
		}
		resume()
		x.ready()
		x.publish("m1")
		x.saw("linked", "m1")
		if err := x.Ready(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Ready with a done ctx = %v, though the inbox is up", err)
		}
	})
}

func TestRefusalIsReturnedAndRetriedSlowly(t *testing.T) {
	for _, text := range []string{
		"NOPERM No permissions to access a channel",
		"NOAUTH Authentication required.",
		"WRONGPASS invalid username-password pair or user is disabled.",
		"ERR unknown command 'subscribe', with args beginning with: 'relock:inbox:me' ",
	} {
		t.Run(text[:6], func(t *testing.T) {
			bubble(t, func(t *testing.T, x *fixture) {
				var granted atomic.Bool
				x.srv.FailNext(1000, text, func(args []string) bool {
					return args[0] == "subscribe" && !granted.Load()
				})
				for range 2 {
					begin := time.Now()
					err := x.Ready(t.Context())
					wantText(t, err, text)
					if d := time.Since(begin); d != 0 {
						t.Errorf("refused after %v, want at once", d)
					}
				}
				x.paced(time.Minute, 11, 25)
				granted.Store(true)
				virtual.Sleep(5 * time.Second)
				x.ready()
				x.publish("m1")
				x.saw("linked", "m1")
			})
		})
	}
}

// An outage is told of when it begins, and seldom after that; the next one is told of
// anew. Before its first failure has ended nothing is known.
func TestOutageIsToldOfAtOnceAndThenSeldom(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		told := func(want int64, when string) {
			t.Helper()
			synctest.Wait()
			if got := x.failures.Load(); got != want {
				t.Errorf("told %d times %s, want %d", got, when, want)
			}
		}
		wantText(t, x.Down(), "not been acknowledged")
		x.ready()
		told(0, "while all is well")
		heal := x.srv.Partition()
		virtual.Sleep(2 * time.Second)
		told(1, "at the beginning")
		wantText(t, x.Down(), "last attempt", "refused")
		virtual.Sleep(time.Hour)
		if n := x.failures.Load(); n < 5 || n > 12 {
			t.Errorf("told %d times within an hour, want about 9", n)
		}
		heal()
		x.ready()
		virtual.Sleep(time.Minute)
		before := x.failures.Load()
		x.srv.Partition()
		virtual.Sleep(2 * time.Second)
		told(before+1, "at the next outage")
	})
}

func TestRefusalIsForgottenWhenTheServerIsGone(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		x.srv.FailNext(1000, "NOPERM No permissions", func(args []string) bool { return args[0] == "subscribe" })
		wantText(t, x.Ready(t.Context()), "NOPERM")
		x.srv.Partition()
		virtual.Sleep(10 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := x.Ready(ctx)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Ready = %v, want the end of ctx", err)
		}
		wantText(t, x.Down(), "refused")
	})
}

func TestGoodLinkResetsThePause(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		x.ready()
		heal := x.srv.Partition()
		virtual.Sleep(time.Minute)
		heal()
		x.ready()
		virtual.Sleep(time.Minute)
		x.srv.KillSubscribers()
		virtual.Sleep(20 * time.Millisecond)
		x.saw("linked", "linked", "linked")
	})
}

func TestHangingDialEndsWithItsLink(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		x.net.hang.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := x.Ready(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Ready = %v, want the end of ctx", err)
		}
		if n := x.net.hanging.Load(); n > 1 {
			t.Errorf("%d dials hang, want that of the last attempt alone", n)
		}
		x.net.hang.Store(false)
		x.ready()
		x.saw("linked")
	})
}

// A server that takes connections and says nothing, and a client that waits for ever for an
// answer. Fails when each attempt keeps one more connection.
func TestAServerThatHangsKeepsFewLinksThoughNothingTimesOut(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		x.rdb = x.srv.Client(t, func(o *redis.Options) { o.Dialer, o.ReadTimeout, o.Protocol = x.net.dial, -1, 3 })
		x.net.deafenThoseThat("hello")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		if err := x.Ready(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Ready = %v, want the end of ctx", err)
		}
		if n := x.net.dials.Load(); n < 2 || n > 3 {
			t.Errorf("%d connections were made, want 2 or 3", n)
		}
		x.net.deafenThoseThat("")
		x.net.closeAll() // as the server's end would
		x.ready()
	})
}
