package contract_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// givesUp has a call end without its lock, and asserts that the hook has been told so, once,
// with the error that the call returned.
func givesUp(t *testing.T, what string, told *[]relock.Event, waited time.Duration, want error, call func() error) {
	t.Helper()
	err := call()
	synctest.Wait()
	if len(*told) != 1 {
		t.Fatalf("%s: told %+v, want once", what, *told)
	}
	e := (*told)[0]
	*told = nil
	rig.WantIs(t, e.Err, want)
	if err != nil && e.Err.Error() != err.Error() {
		t.Errorf("%s: told %q, returned %q", what, e.Err, err)
	}
	if e.Name != "a" || e.Owner != "me" || e.Token != 0 || e.Waited != waited || e.Kind != "plain" || e.Read {
		t.Errorf("%s: told %+v, want of a, by me, after %v", what, e, waited)
	}
}

// giver is a client whose hook notes what it is told.
func giver(x *rig.Lab, told *[]relock.Event) *relock.Client {
	return x.Client(relock.Trace(relock.Hooks{
		Acquired: func(context.Context, relock.Event) { x.T.Error("acquired") },
		GaveUp: func(ctx context.Context, e relock.Event) {
			if ctx.Value(callKey{}) == nil {
				x.T.Error("without the call's context")
			}
			*told = append(*told, e)
		},
	}))
}

func TestGaveUpHookIsToldOfEachCallWithoutItsLock(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		var told []relock.Event
		c, me := giver(x, &told), called(t, "me")
		l, holder := c.NewLock("a"), x.Lock("a")
		rig.Must(t, holder.Lock(t.Context()))
		givesUp(t, "one attempt", &told, 0, relock.ErrNotAcquired, func() error { return second(l.TryLock(me, 0)) })
		givesUp(t, "a wait", &told, time.Second, relock.ErrNotAcquired, func() error { return second(l.TryAcquire(me, time.Second)) })
		ctx, cancel := context.WithTimeout(me, 3*time.Second)
		defer cancel()
		givesUp(t, "a context", &told, 3*time.Second, context.DeadlineExceeded, func() error { return l.Lock(ctx) })
		rig.Must(t, holder.Unlock())
		rig.Must(t, x.Client().NewLock("a", relock.Fair()).Lock(t.Context()))
		givesUp(t, "another kind", &told, 0, relock.ErrKind, func() error { return l.Lock(me) })
		rig.WantIs(t, l.Lock(ctx), context.DeadlineExceeded)
		_, bad := c.NewLock("").TryLock(me, 0)
		rig.WantIs(t, bad, relock.ErrInvalidName)
		if len(told) > 0 {
			t.Errorf("told %+v of calls that asked for nothing", told)
		}
	})
}

// Each call waits, and gives up: it has no hold that could say more.
// Fails when a call for reading is told as one for writing, or a semaphore's as one for reading.
func TestWaitingAndGaveUpHooksSayWhetherTheCallWantsToRead(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		var told []relock.Event
		note := func(_ context.Context, e relock.Event) { told = append(told, e) }
		c, other := x.Client(relock.Trace(relock.Hooks{Waiting: note, GaveUp: note})), x.Client()
		for name, row := range map[string]struct {
			holder, call *relock.Lock
			kind         string
			read         bool
		}{
			"lock":        {other.NewLock("lock"), c.NewLock("lock"), "plain", false},
			"writer":      {other.NewRWLock("writer").WLocker(), c.NewRWLock("writer").WLocker(), "rw", false},
			"reader":      {other.NewRWLock("reader").WLocker(), c.NewRWLock("reader").RLocker(), "rw", true},
			"fair reader": {other.NewRWLock("fair reader", relock.Fair()).WLocker(), c.NewRWLock("fair reader", relock.Fair()).RLocker(), "fair rw", true},
			"semaphore":   {other.NewSemaphore("semaphore", 1), c.NewSemaphore("semaphore", 1), "semaphore", false},
		} {
			rig.Must(t, row.holder.Lock(t.Context()))
			_, err := row.call.TryAcquire(t.Context(), time.Second)
			if rig.WantIs(t, err, relock.ErrNotAcquired); len(told) != 2 {
				t.Fatalf("%s: told %+v, want Waiting and GaveUp", name, told)
			}
			for _, e := range told {
				if e.Kind != row.kind || e.Read != row.read {
					t.Errorf("%s: told kind %q and Read %v, want %q and %v", name, e.Kind, e.Read, row.kind, row.read)
				}
			}
			told = nil
			rig.Must(t, row.holder.Unlock())
		}
	})
}

// Also who stands in line, and whose client is closed.
func TestGaveUpHookIsToldOfTheLineAndOfClose(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		var told []relock.Event
		c := giver(x, &told)
		rig.Must(t, x.Lock("a").Lock(t.Context()))
		l, ctx := c.NewLock("a"), context.WithValue(t.Context(), callKey{}, 1)
		first := rig.Beside(func() error { return l.Lock(ctx) })
		rig.StillWaits(t, first)
		_, err := l.TryLock(ctx, time.Second)
		rig.Must(t, err)
		if len(told) != 1 || !errors.Is(told[0].Err, relock.ErrNotAcquired) || told[0].Owner != "" {
			t.Errorf("told %+v, want of who stood in line", told)
		}
		rig.Must(t, c.Close())
		rig.WantIs(t, rig.Returned(t, first), relock.ErrClosed)
		if len(told) != 2 || !errors.Is(told[1].Err, relock.ErrClosed) {
			t.Errorf("told %+v, want of the closed client as well", told)
		}
	})
}

// A hook that does not return finds nothing that it could leave behind.
func TestPanicOfTheGaveUpHookLeavesNothing(t *testing.T) {
	for ending, end := range endings {
		t.Run(ending, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				c := x.Client(relock.Trace(relock.Hooks{GaveUp: func(context.Context, relock.Event) { end() }}))
				holder := x.Lock("a")
				rig.Must(t, holder.Lock(t.Context()))
				for _, l := range []*relock.Lock{c.NewLock("a"), c.NewLock("a", relock.Owner("me"))} {
					for _, wait := range []time.Duration{0, time.Second} {
						survive(func() { got, err := l.TryLock(t.Context(), wait); t.Errorf("TryLock = %v, %v", got, err) })
					}
				}
				synctest.Wait()
				if left := rig.Remains(c); left != "" || len(x.Waiters(holder)) > 0 {
					t.Errorf("left %s, and %v in the queue", left, x.Waiters(holder))
				}
				rig.Must(t, holder.Unlock())
				x.Frees("a")
			})
		})
	}
}

// Each try to renew that fails is told of each lock: of a few, which go out one by one, and
// of many, which go out together.
func TestRenewalFailedHookIsToldOfEachTry(t *testing.T) {
	for _, n := range []int{1, 12} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				failed, lost := map[string]int{}, map[string]int{}
				events := make(chan func(), 1000)
				c, link := x.Linked(relock.Trace(relock.Hooks{
					RenewalFailed: func(e relock.Event) {
						events <- func() {
							failed[e.Name]++
							if e.Err == nil || e.Token == 0 || e.Kind != "plain" || lost[e.Name] > 0 {
								t.Errorf("told %+v, lost %v", e, lost)
							}
						}
					},
					Lost: func(e relock.Event) { events <- func() { lost[e.Name]++ } },
				}))
				for i := range n {
					rig.Must(t, c.NewLock(fmt.Sprint("l", i)).Lock(t.Context()))
				}
				virtual.Sleep(9 * time.Second)
				heal := link.Cut()
				virtual.Sleep(2 * time.Second)
				heal()
				virtual.Sleep(time.Minute)
				link.Hole()
				virtual.Sleep(time.Minute)
				synctest.Wait()
				for len(events) > 0 {
					(<-events)()
				}
				if len(failed) != n || len(lost) != n || failed["l0"] < 4 || lost["l0"] != 1 {
					t.Errorf("failed %v, lost %v, want each of %d, once lost", failed, lost, n)
				}
			})
		})
	}
}

func TestJoinedHooksAreAllCalledInOrder(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		var said []string
		say := func(what string) (func(context.Context, relock.Event), func(relock.Event)) {
			return func(context.Context, relock.Event) { said = append(said, what) }, func(relock.Event) { said = append(said, what) }
		}
		all := func(who string) (h relock.Hooks) {
			h.Waiting, _ = say(who + " waiting")
			h.Acquired, _ = say(who + " acquired")
			h.GaveUp, _ = say(who + " gave up")
			_, h.Renewed = say(who + " renewed")
			_, h.RenewalFailed = say(who + " renewal failed")
			_, h.Released = say(who + " released")
			_, h.Lost = say(who + " lost")
			return h
		}
		joined := relock.Hooks{}.Join(all("1"), relock.Hooks{}, relock.Hooks{Waiting: all("2").Waiting}, all("3"))
		joined.Waiting(t.Context(), relock.Event{})
		joined.Acquired(t.Context(), relock.Event{})
		joined.GaveUp(t.Context(), relock.Event{})
		for _, hook := range []func(relock.Event){joined.Renewed, joined.RenewalFailed, joined.Released, joined.Lost} {
			hook(relock.Event{})
		}
		want := "1 waiting, 2 waiting, 3 waiting, 1 acquired, 3 acquired, 1 gave up, 3 gave up, 1 renewed, 3 renewed, " +
			"1 renewal failed, 3 renewal failed, 1 released, 3 released, 1 lost, 3 lost"
		if got := strings.Join(said, ", "); got != want {
			t.Errorf("called %s\nwant   %s", got, want)
		}
		if none := (relock.Hooks{}).Join(relock.Hooks{}); none.Waiting != nil || none.Lost != nil {
			t.Error("of no hooks there are some")
		}
	})
}

// Fails when the hooks of a Trace before the last are called too.
func TestOfSeveralTracesTheLastCounts(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		var first, last record
		l := x.Client(first.trace(), last.trace()).NewLock("a")
		rig.Must(t, l.Lock(called(t, "me")))
		rig.Must(t, l.Unlock())
		first.saw(t)
		last.saw(t, "acquired a me token=true waited=0s held=0s err=<nil>",
			"released a me token=true waited=0s held=0s err=<nil>")
	})
}

// One that panics keeps no other from being called, and leaves no hold behind.
func TestPanicOfAJoinedHookKeepsNothingBack(t *testing.T) {
	for ending, end := range endings {
		t.Run(ending, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				n := 0
				c := x.Client(relock.Trace(relock.Hooks{Acquired: func(context.Context, relock.Event) { end() }}.Join(
					relock.Hooks{Acquired: func(context.Context, relock.Event) { n++ }})))
				l := c.NewLock("a")
				survive(func() { t.Errorf("Lock returned %v", l.Lock(t.Context())) })
				synctest.Wait() // it is given back beside the call
				if wantHolds(t, l, 0); n != 1 {
					t.Errorf("the other was called %d times, want once", n)
				}
				x.Frees("a")
			})
		})
	}
}
