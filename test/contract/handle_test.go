package contract_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// occupied stages a handle whose hold an operator has removed, and that nobody has
// unlocked, while another call of the handle is next in the queue.
func occupied(t *testing.T, f func(x *rig.Lab, l, other *relock.Lock, link *redistest.Link, waiter <-chan error)) {
	t.Helper()
	kinds := map[string]func(c *relock.Client) *relock.Lock{
		"plain": func(c *relock.Client) *relock.Lock { return c.NewLock("a") },
		"fair":  func(c *relock.Client) *relock.Lock { return c.NewLock("a", relock.Fair()) },
		"write": func(c *relock.Client) *relock.Lock { return c.NewRWLock("a").WLocker() },
	}
	for kind, handle := range kinds {
		for _, owner := range []string{"", "you"} {
			t.Run(kind+" "+owner, func(t *testing.T) {
				rig.Run(t, func(t *testing.T, x *rig.Lab) {
					c, link := x.Linked()
					l, other := handle(c), handle(x.Client())
					rig.Must(t, l.Lock(x.By("me")))
					ctx := t.Context()
					if owner != "" {
						ctx = x.By(owner)
					}
					waiter := rig.Beside(func() error { return l.Lock(ctx) })
					synctest.Wait()
					f(x, l, other, link, waiter)
				})
			})
		}
	}
}

// A goroutine hangs with a lost hold, and the next call of its handle is granted the
// lock. It kept it, renewed for ever, until that goroutine would unlock.
// Fails without the fix: a grant for a handle that is occupied is given back.
func TestGrantForAnOccupiedHandleGoesToTheNext(t *testing.T) {
	occupied(t, func(x *rig.Lab, l, other *relock.Lock, link *redistest.Link, waiter <-chan error) {
		next := rig.Beside(func() error { return other.Lock(x.T.Context()) })
		synctest.Wait()
		removed, err := other.ForceUnlock(x.T.Context())
		if rig.Must(x.T, err); !removed {
			x.T.Fatal("nothing was removed")
		}
		rig.Must(x.T, rig.Returned(x.T, next))
		rig.StillWaits(x.T, waiter)
		rig.Must(x.T, other.Unlock())
		x.Holders(other, "", 0)

		// It waits without asking: who hangs may do so for long.
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if rig.Runs(cmd, "acquire") {
				x.T.Error("it asks while its handle is occupied")
			}
			return redistest.Pass
		})
		virtual.Sleep(time.Hour)
		x.Waits(other)
		link.OnCommand(nil)
		rig.WantIs(x.T, l.Unlock(), relock.ErrLost)
		rig.Must(x.T, rig.Returned(x.T, waiter))
		x.Refuses(other)
		wantHolds(x.T, l, 1)
		rig.Must(x.T, l.Unlock())
	})
}

// The same grant ended while its call waited for the handle, another process had the
// lock since, and the call returned the hold that was lost.
// Fails without the fix: a call whose handle was occupied asks anew.
func TestHoldThatWasLostBehindItsHandleIsNotReturned(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l, other := x.Lock("a", relock.NoWatchdog(), relock.TTL(5*time.Second)), x.Lock("a")
		rig.Must(t, l.Lock(x.By("me")))
		var h *relock.Hold
		waiter := rig.Beside(func() (err error) { h, err = l.Acquire(x.By("you")); return err })
		virtual.Sleep(30 * time.Second)
		rig.Must(t, other.Lock(t.Context()))
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
		rig.StillWaits(t, waiter)
		rig.Must(t, other.Unlock())
		rig.Must(t, rig.Returned(t, waiter))
		rig.Must(t, h.Err())
		rig.Must(t, h.Release())
	})
}

// A goroutine that has lost its hold, and forgot the Unlock, waited for itself
// without a word.
// Fails without the fix: the wait is logged after a third of the TTL, and its end says so.
func TestWaitForTheUnlockOfALostHoldIsHintedAt(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		var out lockedBuffer
		l := x.Client(relock.Logger(slog.New(slog.NewTextHandler(&out, nil)))).NewLock("a", relock.NoWatchdog())
		lose(t, l, t.Context())
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errReason)
		defer cancel()
		result := rig.Beside(func() error { return l.Lock(ctx) })
		began := time.Now()
		for _, look := range []struct {
			at   time.Duration
			want int
		}{{10*time.Second - 1, 0}, {10*time.Second + 1, 1}, {59 * time.Second, 1}} {
			virtual.Sleep(time.Until(began.Add(look.at)))
			synctest.Wait()
			if got := strings.Count(out.String(), "waiting long"); got != look.want {
				t.Errorf("%d hints after %v, want %d", got, look.at, look.want)
			}
		}
		err := <-result
		rig.WantIs(t, err, context.DeadlineExceeded, errReason)
		_, tried := l.TryAcquire(t.Context(), 20*time.Second)
		for _, err := range []error{err, tried} {
			if !strings.Contains(err.Error(), "lost hold") || !strings.Contains(err.Error(), "Unlock") || !strings.Contains(err.Error(), "WithOwner") {
				t.Errorf("%v, want it to name the lost hold, its Unlock, and WithOwner", err)
			}
		}
		_, short := l.TryAcquire(t.Context(), 9*time.Second)
		if strings.Contains(short.Error(), "WithOwner") {
			t.Errorf("%v after less than a third of the TTL", short)
		}
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
	})
}

// The process is stopped again and again for longer than its TTL, or Redis is further
// away: every grant has ended when its answer comes. A call asked anew without a
// pause, and took the lock from the others each time.
// Fails without the fix: it backs off, and its error says what is wrong.
func TestGrantsThatEndBeforeTheyCanBeUsedAreTold(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		var out lockedBuffer
		c, link := x.Linked(relock.Logger(slog.New(slog.NewTextHandler(&out, nil))))
		l := c.NewLock("a", relock.TTL(100*time.Millisecond))
		asked := 0
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if rig.Runs(cmd, "acquire") && asked < 1000 {
				asked++
				x.Suspend(time.Second)
			}
			return redistest.Pass
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, tried := l.TryAcquire(ctx, 20*time.Second)
		rig.WantIs(t, tried, relock.ErrNotAcquired)
		err := l.Lock(ctx)
		rig.WantIs(t, err, context.DeadlineExceeded)
		for _, err := range []error{tried, err} {
			if err == nil || !strings.Contains(err.Error(), "TTL of 100ms") {
				t.Errorf("%v, want it to name the TTL", err)
			}
		}
		if n := strings.Count(out.String(), "longer TTL"); n != 2 {
			t.Errorf("%d records that ask for a longer TTL, want one for each call", n)
		}
		if asked > 150 {
			t.Errorf("asked %d times in a minute, want a pause of up to a second between grants", asked)
		}
		link.OnCommand(nil)
		synctest.Wait() // for another client the window is the round trip of the call's leaving
		x.Frees("a")
	})
}
