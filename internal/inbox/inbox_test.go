package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/inbox"
)

func TestFirstMessageAfterReadyIsDelivered(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		x.ready()
		x.publish("m1")
		x.saw("linked", "m1")
		x.subscribers(1)
	})
}

func TestMessagesComeInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		x.ready()
		want := []string{"linked"}
		for i := range 200 {
			m := fmt.Sprint("m", i)
			want = append(want, m)
			if err := x.pub.Publish(t.Context(), channel, m).Err(); err != nil {
				t.Fatal(err)
			}
		}
		x.saw(want...)
	})
}

func TestNewStartsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		x.Suspect()
		x.quiet(time.Hour)
		if x.Up() || !x.Heard().IsZero() {
			t.Errorf("up %v, heard %v before the start", x.Up(), x.Heard())
		}
	})
}

func TestReadyStartsOneLinkForAllCallers(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		errs := make(chan error)
		for range 20 {
			go func() { errs <- x.Ready(t.Context()) }()
		}
		for range 20 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		x.saw("linked")
		if n := x.net.dials.Load(); n != 1 {
			t.Errorf("%d dials, want 1", n)
		}
	})
}

func TestStartSubscribesWithoutWaiting(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		x.Start()
		x.Start()
		x.saw("linked")
		if !x.Up() {
			t.Error("not up")
		}
		x.subscribers(1)
	})
}

func TestKilledSubscriberLinksAgain(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		x.ready()
		for range 3 {
			time.Sleep(time.Minute)
			x.srv.KillSubscribers()
			x.publish("lost")
			if x.Up() {
				t.Error("up right after the link was cut")
			}
			time.Sleep(50 * time.Millisecond)
			x.ready()
			x.subscribers(1)
		}
		x.publish("m1")
		x.saw("linked", "linked", "linked", "linked", "m1")
	})
}

func TestSecondAcknowledgementOnOneLinkCallsLinked(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		x.ready()
		dials := x.net.dials.Load()
		if err := x.ps.Subscribe(t.Context(), channel); err != nil {
			t.Fatal(err)
		}
		x.saw("linked", "linked")
		x.publish("m1")
		x.saw("linked", "linked", "m1")
		if x.net.dials.Load() != dials || !x.Up() {
			t.Error("the link was replaced")
		}
	})
}

func TestUnsubscribedLinkIsReplaced(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		x.ready()
		if err := x.ps.Unsubscribe(t.Context(), channel); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
		x.publish("m1")
		x.saw("linked", "linked", "m1")
	})
}

func TestSuspectRelinksAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		x.ready()
		time.Sleep(time.Minute)
		begin := time.Now()
		x.Suspect()
		x.saw("linked", "linked")
		x.ready()
		if d := time.Since(begin); d != 0 {
			t.Errorf("relinked after %v, want at once", d)
		}
		x.subscribers(1)
		x.publish("m1")
		time.Sleep(time.Minute)
		x.saw("linked", "linked", "m1")
	})
}

func TestSuspectOfYoungLinksBacksOff(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		x.ready()
		done := time.After(time.Minute)
		go func() {
			for tick := time.NewTicker(time.Millisecond); ; {
				select {
				case <-tick.C:
					x.Suspect()
				case <-done:
					return
				}
			}
		}()
		x.paced(time.Minute, 55, 130)
	})
}

func TestHalfOpenLinkIsReplacedOnSuspicion(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		x.ready()
		time.Sleep(time.Minute)
		x.net.deafen()
		heard := x.Heard()
		x.publish("lost")
		time.Sleep(time.Hour)
		if !x.Up() || !x.Heard().Equal(heard) {
			t.Errorf("up %v, heard %v later: a dead link looks like an idle one", x.Up(), x.Heard().Sub(heard))
		}
		x.Suspect()
		x.saw("linked", "linked")
		x.publish("m1")
		x.saw("linked", "linked", "m1")
		x.subscribers(1)
	})
}

func TestHeardIsTheLastInboundFrame(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		time.Sleep(time.Second)
		x.ready()
		if got, want := x.Heard(), time.Now(); !got.Equal(want) {
			t.Errorf("heard the acknowledgement at %v, want %v", got, want)
		}
		time.Sleep(time.Minute)
		x.publish("m1")
		at := time.Now()
		time.Sleep(time.Minute)
		if got := x.Heard(); !got.Equal(at) {
			t.Errorf("heard the message at %v, want %v", got, at)
		}
	})
}

func TestUnacknowledgedLinkIsReplaced(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		x.net.deafenThoseThat("subscribe")
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := x.Ready(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Ready = %v", err)
		}
		x.Suspect() // no link to suspect
		x.net.deafenThoseThat("")
		x.ready()
		if d := time.Since(begin); d < 2*time.Second || d > 3*time.Second {
			t.Errorf("ready after %v, want a second attempt after 2 s", d)
		}
		x.saw("linked")
	})
}

// A message that the old link has still read is not handed on after the new
// link's Linked, nor beside it.
func TestCallbacksOfTwoLinksDoNotMix(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		x.onDeliver = func(payload string) {
			if payload == "slow" {
				time.Sleep(time.Minute)
				x.note("slow done")
			}
		}
		x.ready()
		time.Sleep(time.Minute)
		x.publish("slow")
		x.publish("behind")
		x.Suspect()
		synctest.Wait()
		time.Sleep(time.Hour)
		x.publish("m1")
		x.saw("linked", "slow", "slow done", "linked", "m1")
	})
}

func TestUnreachableServerIsDialledAtAPace(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		x.ready()
		heal := x.srv.Partition()
		time.Sleep(20 * time.Second)
		x.paced(time.Minute, 55, 121)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := x.Ready(ctx)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Ready = %v, want the end of ctx", err)
		}
		wantText(t, err, "refused")
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
		time.Sleep(20 * time.Second)
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

func TestClosedClientIsTerminal(t *testing.T) {
	t.Run("before the start", func(t *testing.T) {
		bubble(t, func(t *testing.T, x *fixture) {
			_ = x.rdb.Close()
			if err := x.Ready(t.Context()); !errors.Is(err, redis.ErrClosed) {
				t.Errorf("Ready = %v, want %v", err, redis.ErrClosed)
			}
			x.quiet(time.Hour)
		})
	})
	t.Run("while up", func(t *testing.T) {
		bubble(t, func(t *testing.T, x *fixture) {
			x.ready()
			_ = x.rdb.Close()
			if err := awaitRefusal(x); !errors.Is(err, redis.ErrClosed) {
				t.Errorf("Ready = %v, want %v", err, redis.ErrClosed)
			}
			x.quiet(time.Hour)
			if x.Up() {
				t.Error("up on a closed client")
			}
			if err := x.Ready(t.Context()); !errors.Is(err, redis.ErrClosed) {
				t.Errorf("Ready an hour later = %v, want %v", err, redis.ErrClosed)
			}
		})
	})
}

// awaitRefusal returns what Ready says once the link that was up has ended.
func awaitRefusal(x *fixture) error {
	x.t.Helper()
	synctest.Wait()
	ctx, cancel := context.WithTimeout(x.t.Context(), 10*time.Second)
	defer cancel()
	return x.Ready(ctx)
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
				time.Sleep(5 * time.Second)
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
		time.Sleep(2 * time.Second)
		told(1, "at the beginning")
		wantText(t, x.Down(), "last attempt", "refused")
		time.Sleep(time.Hour)
		if n := x.failures.Load(); n < 5 || n > 12 {
			t.Errorf("told %d times within an hour, want about 9", n)
		}
		heal()
		x.ready()
		time.Sleep(time.Minute)
		before := x.failures.Load()
		x.srv.Partition()
		time.Sleep(2 * time.Second)
		told(before+1, "at the next outage")
	})
}

func TestRefusalIsForgottenWhenTheServerIsGone(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		x.srv.FailNext(1000, "NOPERM No permissions", func(args []string) bool { return args[0] == "subscribe" })
		wantText(t, x.Ready(t.Context()), "NOPERM")
		x.srv.Partition()
		time.Sleep(10 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := x.Ready(ctx)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Ready = %v, want the end of ctx", err)
		}
		wantText(t, err, "refused")
	})
}

func TestGoodLinkResetsThePause(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		x.ready()
		heal := x.srv.Partition()
		time.Sleep(time.Minute)
		heal()
		x.ready()
		time.Sleep(time.Minute)
		x.srv.KillSubscribers()
		time.Sleep(20 * time.Millisecond)
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

func TestCloseEndsEverything(t *testing.T) {
	for name, prepare := range map[string]func(*fixture){
		"before the start": func(*fixture) {},
		"while up":         (*fixture).ready,
		"after a suspicion": func(x *fixture) {
			x.ready()
			time.Sleep(time.Minute)
			x.Suspect()
		},
		"while half-open": func(x *fixture) {
			x.ready()
			x.net.deafen()
		},
		"while backing off": func(x *fixture) {
			x.ready()
			x.srv.Partition()
			time.Sleep(time.Minute)
		},
		"while a dial hangs": func(x *fixture) {
			x.net.hang.Store(true)
			ctx, cancel := context.WithTimeout(x.t.Context(), time.Second)
			defer cancel()
			_ = x.Ready(ctx)
		},
		"while the server is stalled": func(x *fixture) {
			x.srv.Stall()
			ctx, cancel := context.WithTimeout(x.t.Context(), time.Second)
			defer cancel()
			_ = x.Ready(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, x *fixture) {
				prepare(x)
				begin := time.Now()
				x.Close()
				x.Close()
				if d := time.Since(begin); d > 10*time.Second {
					t.Errorf("Close took %v", d)
				}
				if x.Up() {
					t.Error("up after Close")
				}
				if err := x.Ready(t.Context()); !errors.Is(err, inbox.ErrClosed) {
					t.Errorf("Ready = %v, want %v", err, inbox.ErrClosed)
				}
				x.Suspect()
				x.quiet(time.Hour)
			})
		})
	}
}

func TestCloseWakesReady(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		x.srv.Partition()
		got := make(chan error)
		for range 3 {
			go func() { got <- x.Ready(context.Background()) }()
		}
		time.Sleep(time.Minute)
		x.Close()
		for range 3 {
			if err := <-got; !errors.Is(err, inbox.ErrClosed) {
				t.Errorf("Ready = %v, want %v", err, inbox.ErrClosed)
			}
		}
	})
}
