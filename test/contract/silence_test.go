package contract_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// outages are the ways in which Redis does not say who has a lock.
var outages = map[string]func(x *rig.Lab, link *redistest.Link) (heal func()){
	"silent":  func(_ *rig.Lab, link *redistest.Link) func() { return link.Hole() },
	"refused": func(_ *rig.Lab, link *redistest.Link) func() { return link.Cut() },
	"loading": func(x *rig.Lab, _ *redistest.Link) func() {
		var over atomic.Bool
		x.Server.FailNext(1_000_000, "LOADING Redis is loading the dataset in memory", func(args []string) bool {
			return !over.Load() && (args[0] == "evalsha" || args[0] == "eval")
		})
		return func() { over.Store(true) }
	},
}

// manyConns is more than a test uses: who waits for a connection uses timers that
// go-redis keeps for the whole process, and so beyond the bubble.
const manyConns = 1000

// pooled is linked with so many connections that none is waited for.
func pooled(x *rig.Lab) (*relock.Client, *redistest.Link) {
	x.T.Helper()
	link := redistest.NewLink(x.T, x.Server.Dial)
	rdb := x.Server.Client(x.T, func(o *redis.Options) { o.Dialer, o.PoolSize = link.Dial, manyConns })
	return x.ClientOver(rdb), link
}

// everyTry is each call that takes a wait, on locks of all kinds and modes.
func everyTry(c *relock.Client) map[string]func(context.Context, time.Duration) (bool, error) {
	never := func(context.Context) error { return errors.New("fn ran") }
	rw, named := c.NewRWLock("rw"), c.NewLock("named", relock.Owner("me"))
	acquire := func(l *relock.Lock) func(context.Context, time.Duration) (bool, error) {
		return func(ctx context.Context, wait time.Duration) (bool, error) {
			h, err := l.TryAcquire(ctx, wait)
			return h != nil, err
		}
	}
	return map[string]func(context.Context, time.Duration) (bool, error){
		"TryLock":            c.NewLock("a").TryLock,
		"TryLock, named":     named.TryLock,
		"TryLock, fair":      c.NewLock("fair", relock.Fair()).TryLock,
		"TryLock, write":     rw.TryLock,
		"TryRLock":           rw.TryRLock,
		"TryAcquire":         acquire(c.NewLock("a")),
		"TryAcquire, reader": acquire(rw.RLocker()),
		"TryAcquire, writer": acquire(rw.WLocker()),
		"TryDo": func(ctx context.Context, wait time.Duration) (bool, error) {
			return c.NewLock("a").TryDo(ctx, wait, never)
		},
	}
}

// wantOutage asserts that a call has said that nobody knows, in time.
func wantOutage(t *testing.T, what string, began time.Time, limit time.Duration, got bool, err error) {
	t.Helper()
	if took := time.Since(began); got || !errors.Is(err, relock.ErrUnavailable) || errors.Is(err, relock.ErrNotAcquired) || took > limit {
		t.Errorf("%s = %v, %v after %v, want an ErrUnavailable that is not ErrNotAcquired within %v", what, got, err, took, limit)
	}
}

// Fails when the end of the wait is ErrNotAcquired whatever was answered.
func TestAnOutageIsNeverTakenForContention(t *testing.T) {
	for name, begin := range outages {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				c, link := pooled(x)
				heal := begin(x, link)
				for way, call := range everyTry(c) {
					for _, wait := range []time.Duration{0, time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond, time.Second, 3 * time.Second} {
						began, limit := time.Now(), wait
						if wait == 0 {
							limit = 2 * time.Second // one attempt, of a TTL of 30 s
						}
						got, err := call(t.Context(), wait)
						wantOutage(t, fmt.Sprintf("%s(%v)", way, wait), began, limit, got, err)
					}
				}
				heal()
				virtual.Sleep(time.Minute)
				for way, call := range everyTry(c) {
					if way != "TryDo" && !strings.Contains(way, "TryAcquire") {
						if got, err := call(t.Context(), 0); !got && err != nil {
							t.Errorf("afterwards %s = %v", way, err)
						}
					}
				}
			})
		})
	}
}

// A server that cannot be dialled, and a client that has never asked it anything.
func TestAServerThatCannotBeDialledIsNoContention(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		for _, timeouts := range []bool{false, true} {
			rdb := x.Server.Client(t, func(o *redis.Options) {
				o.ContextTimeoutEnabled, o.PoolSize = timeouts, manyConns
				o.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				}
			})
			c, err := relock.New(rdb)
			rig.Must(t, err)
			for way, call := range everyTry(c) {
				for _, wait := range []time.Duration{0, time.Millisecond, 300 * time.Millisecond, 3 * time.Second} {
					began := time.Now()
					got, err := call(context.WithoutCancel(t.Context()), wait)
					wantOutage(t, fmt.Sprintf("%s(%v)", way, wait), began, max(wait, 2*time.Second), got, err)
				}
			}
			rig.Must(t, c.Close())
		}
		virtual.Sleep(time.Minute) // go-redis goes on dialling
	})
}

// Fails when who stands in line goes by what its front was told before Redis went silent.
func TestWhoStandsInLineIsToldOfAnOutage(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := pooled(x)
		l, other := c.NewLock("a"), x.Lock("a")
		taken := func(when string) { t.Helper(); wantTaken(t, c, when) }
		silent := func(front string) { t.Helper(); wantSilence(t, c, "TryLock behind a front "+front) }

		heal := link.Hole()
		front := rig.Beside(func() error { return l.Lock(t.Context()) })
		rig.StillWaits(t, front)
		silent("without an answer")
		heal()
		rig.Must(t, <-front)
		taken("while this client holds it")
		heal = link.Hole()
		taken("while this client holds it for certain")
		heal()
		rig.Must(t, l.Unlock())

		rig.Must(t, other.Lock(t.Context()))
		front = rig.Beside(func() error { return l.Lock(t.Context()) })
		rig.StillWaits(t, front)
		taken("in line")
		virtual.Sleep(5 * time.Second) // no heartbeat yet
		taken("in line, later")
		heal = link.Hole()
		virtual.Sleep(10 * time.Second)
		silent("whose heartbeat is not answered")
		heal()
		virtual.Sleep(5 * time.Second)
		taken("in line, after the outage")
		rig.Must(t, other.Unlock())
		rig.Must(t, <-front)
		rig.Must(t, l.Unlock())
	})
}

// inLine is how long a call stands in line.
const inLine = 300 * time.Millisecond

func wantTaken(t *testing.T, c *relock.Client, when string) {
	t.Helper()
	if got, err := c.NewLock("a").TryLock(t.Context(), inLine); got || err != nil {
		t.Errorf("%s: TryLock = %v, %v, want false, nil", when, got, err)
	}
}

func wantSilence(t *testing.T, c *relock.Client, what string) {
	t.Helper()
	began := time.Now()
	got, err := c.NewLock("a").TryLock(t.Context(), inLine)
	wantOutage(t, what, began, inLine, got, err)
}

// Who stands in line behind a call that was told so by its first answer has been told.
func TestLineKnowsWhatItsFirstWaiterWasTold(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		b.Warm() // its first request is answered from the queue
		held := s.Take(a.NewLock("l"))
		waiter := s.Begin(b.NewLock("l"))
		waiter.Waits()
		for range 2 {
			if ok, err := b.NewLock("l").TryLock(t.Context(), 200*time.Millisecond); ok || err != nil {
				t.Errorf("%v, %v, want neither: redis has said that the lock is taken", ok, err)
			}
		}
		rig.End(t, held)
		rig.End(t, waiter.Holds())
	})
}

// Redis has said that the lock is taken, and does not answer any more when the wait ends. A call that waits asks every
// third of its TTL.
func TestAnOutageThatBeginsWhileACallWaitsIsNoContention(t *testing.T) {
	for name, begin := range outages {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				for _, l := range []*relock.Lock{x.Lock("a"), x.Lock("named"), x.Lock("fair", relock.Fair()), x.Client().NewRWLock("rw").WLocker()} {
					rig.Must(t, l.Lock(t.Context()))
				}
				c, link := pooled(x)
				told := map[string]<-chan error{}
				for way, call := range everyTry(c) { // some of them stand in line
					told[way] = rig.Beside(func() error {
						got, err := call(t.Context(), 25*time.Second)
						wantOutage(t, way, time.Now(), 0, got, err)
						return nil
					})
				}
				virtual.Sleep(time.Second)
				heal := begin(x, link)
				for _, call := range told {
					rig.Must(t, <-call)
				}
				heal()
				virtual.Sleep(time.Minute)
				wantTaken(t, c, "after the outage")
			})
		})
	}
}

// The grant comes by message, but Redis answers no question any more: with NoWatchdog its whole lease must be stated.
func TestAGrantThatCannotBeConfirmedInAnOutageIsNoContention(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		held := x.Lock("a")
		rig.Must(t, held.Lock(t.Context()))
		c, link := x.Linked()
		call := rig.Beside(func() error {
			got, err := c.NewLock("a", relock.NoWatchdog()).TryLock(t.Context(), 20*time.Second)
			wantOutage(t, "TryLock", time.Now(), 0, got, err)
			return nil
		})
		virtual.Sleep(time.Second)
		link.OnCommand(func(redistest.Command) redistest.Verdict { return redistest.Lose })
		rig.Must(t, held.Unlock())
		rig.Must(t, <-call)
	})
}

// A request that was sent a moment before the end of the wait may yet be answered: Redis said that the lock is taken.
func TestAWaitThatEndsWithARequestInFlightWasForATakenLock(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rig.Must(t, x.Lock("a").Lock(t.Context()))
		c, link := x.Linked()
		for owner, ctx := range map[string]context.Context{"anonymous": t.Context(), "named": x.By("me")} {
			call := rig.Beside(func() error {
				got, err := c.NewLock("a").TryLock(ctx, 10*time.Second+50*time.Millisecond)
				if got {
					return errors.New("got it")
				}
				return err
			})
			virtual.Sleep(9900 * time.Millisecond) // its next question comes after ten seconds
			heal := link.Hole()
			if err := <-call; err != nil {
				t.Errorf("%s: %v, want false, nil", owner, err)
			}
			heal()
			virtual.Sleep(time.Minute)
		}
	})
}

// The context's error, with what was the matter from the first unanswered request on.
func TestContextSaysWhatWasTheMatterWithRedis(t *testing.T) {
	for name, begin := range outages {
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			c, link := pooled(x)
			held := c.NewLock("held", relock.Owner("me"))
			rig.Must(t, held.Lock(t.Context()))
			taken := x.Lock("taken")
			rig.Must(t, taken.Lock(t.Context()))
			ask := func(l *relock.Lock, d time.Duration) <-chan error {
				ctx, cancel := context.WithTimeoutCause(t.Context(), d, errReason)
				t.Cleanup(cancel)
				return rig.Beside(func() error { return l.Lock(ctx) })
			}
			waits := ask(c.NewLock("taken"), 20*time.Second)
			rig.StillWaits(t, waits)
			heal := begin(x, link)
			calls := map[string]<-chan error{
				"asking": ask(c.NewLock("a"), time.Second), "in line": ask(c.NewLock("a"), 999*time.Millisecond), "re-entry": ask(held, time.Second),
				"waiting for another re-entry": ask(held, 500*time.Millisecond), "fair": ask(c.NewLock("fair", relock.Fair()), 5*time.Millisecond), "waiting": waits,
			}
			for way, call := range calls {
				err := <-call
				rig.WantIs(t, err, context.DeadlineExceeded, errReason)
				if !strings.Contains(err.Error(), "until then: redis could not be asked: ") {
					t.Errorf("%s, %s: %v, want what was the matter with Redis", name, way, err)
				}
			}
			heal()
			rig.Must(t, taken.Unlock())
			rig.Must(t, held.Unlock())
			synctest.Wait()
		})
	}
}

// A lost hold of the handle is in the way: its Unlock is still to come.
func TestLostHoldOfTheHandleIsNoContention(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Client().NewLock("a", relock.TTL(time.Second), relock.NoWatchdog())
		for _, owner := range []string{"", "me"} {
			own := t.Context()
			if owner != "" {
				own = x.By(owner)
			}
			rig.Must(t, l.Lock(own))
			virtual.Sleep(2 * time.Second)
			for who, ctx := range map[string]context.Context{"the same": own, "another": x.By("you"), "nobody": t.Context()} {
				for _, wait := range []time.Duration{0, time.Millisecond, 300 * time.Millisecond, 3 * time.Second} {
					got, err := l.TryLock(ctx, wait)
					if rig.WantIs(t, err, relock.ErrLost); got || errors.Is(err, relock.ErrNotAcquired) {
						t.Errorf("TryLock(%v) of %s = %v, %v", wait, who, got, err)
					}
				}
			}
			rig.WantIs(t, l.Unlock(), relock.ErrLost)
			if got, err := l.TryLock(own, time.Millisecond); !got || err != nil {
				t.Errorf("TryLock after the unlock = %v, %v", got, err)
			}
			rig.Must(t, l.Unlock())
		}
	})
}
