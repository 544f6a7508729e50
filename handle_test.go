package relock_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
)

// occupied stages a handle whose hold an operator has removed, and that nobody has
// unlocked, while another call of the handle is next in the queue.
func occupied(t *testing.T, f func(x *lab, l, other *relock.Lock, link *redistest.Link, waiter <-chan error)) {
	t.Helper()
	kinds := map[string]func(c *relock.Client) *relock.Lock{
		"plain": func(c *relock.Client) *relock.Lock { return c.NewLock("a") },
		"fair":  func(c *relock.Client) *relock.Lock { return c.NewLock("a", relock.Fair()) },
		"write": func(c *relock.Client) *relock.Lock { return c.NewRWLock("a").WLocker() },
	}
	for kind, handle := range kinds {
		for _, owner := range []string{"", "you"} {
			t.Run(kind+" "+owner, func(t *testing.T) {
				inLab(t, func(t *testing.T, x *lab) {
					c, link := x.linked()
					l, other := handle(c), handle(x.client())
					noErr(t, l.Lock(x.by("me")))
					ctx := t.Context()
					if owner != "" {
						ctx = x.by(owner)
					}
					waiter := beside(func() error { return l.Lock(ctx) })
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
	occupied(t, func(x *lab, l, other *relock.Lock, link *redistest.Link, waiter <-chan error) {
		next := beside(func() error { return other.Lock(x.t.Context()) })
		synctest.Wait()
		removed, err := other.ForceUnlock(x.t.Context())
		if noErr(x.t, err); !removed {
			x.t.Fatal("nothing was removed")
		}
		noErr(x.t, hasReturned(x.t, next))
		stillWaits(x.t, waiter)
		noErr(x.t, other.Unlock())
		x.holders(other, "", 0)

		// It waits without asking: who hangs may do so for long.
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if runs(cmd, "acquire") {
				x.t.Error("it asks while its handle is occupied")
			}
			return redistest.Pass
		})
		time.Sleep(time.Hour)
		x.waits(other)
		link.OnCommand(nil)
		wantIs(x.t, l.Unlock(), relock.ErrLost)
		noErr(x.t, hasReturned(x.t, waiter))
		x.refuses(other)
		wantHolds(x.t, l, 1)
		noErr(x.t, l.Unlock())
	})
}

// The same grant ended while its call waited for the handle, another process had the
// lock since, and the call returned the hold that was lost.
// Fails without the fix: a call whose handle was occupied asks anew.
func TestHoldThatWasLostBehindItsHandleIsNotReturned(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l, other := x.lock("a", relock.NoWatchdog(), relock.TTL(5*time.Second)), x.lock("a")
		noErr(t, l.Lock(x.by("me")))
		var h *relock.Hold
		waiter := beside(func() (err error) { h, err = l.Acquire(x.by("you")); return err })
		time.Sleep(30 * time.Second)
		noErr(t, other.Lock(t.Context()))
		wantIs(t, l.Unlock(), relock.ErrLost)
		stillWaits(t, waiter)
		noErr(t, other.Unlock())
		noErr(t, hasReturned(t, waiter))
		noErr(t, h.Err())
		noErr(t, h.Release())
	})
}

// A reader's grant is judged once more when it is put on its handle: telling of the
// loss of another hold there may have taken longer than its lease.
// Fails without the fix: a hold that is lost before its call returns is no result.
func TestHoldThatIsLostBeforeItsCallReturnsIsNoResult(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		slow := relock.Trace(relock.Hooks{Lost: func(relock.Event) { x.suspend(time.Minute) }})
		c, link := x.linked(slow)
		l := c.NewRWLock("a", relock.NoWatchdog(), relock.TTL(10*time.Second)).RLocker()
		first := acquire(t, l, t.Context())
		time.Sleep(5 * time.Second)
		asked := false
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if runs(cmd, "acquire") && !asked {
				asked = true
				x.suspend(6 * time.Second)
			}
			return redistest.Pass
		})
		second := acquire(t, l, t.Context())
		noErr(t, second.Err())
		wantIs(t, first.Release(), relock.ErrLost)
		noErr(t, second.Release())
		wantHolds(t, l, 0)
	})
}

// A goroutine that has lost its hold, and forgot the Unlock, waited for itself
// without a word.
// Fails without the fix: the wait is logged after a third of the TTL, and its end says so.
func TestWaitForTheUnlockOfALostHoldIsHintedAt(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		var out lockedBuffer
		l := x.client(relock.Logger(slog.New(slog.NewTextHandler(&out, nil)))).NewLock("a", relock.NoWatchdog())
		lose(t, l, t.Context())
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errReason)
		defer cancel()
		result := beside(func() error { return l.Lock(ctx) })
		began := time.Now()
		for _, look := range []struct {
			at   time.Duration
			want int
		}{{10*time.Second - 1, 0}, {10*time.Second + 1, 1}, {59 * time.Second, 1}} {
			time.Sleep(time.Until(began.Add(look.at)))
			synctest.Wait()
			if got := strings.Count(out.String(), "waiting long"); got != look.want {
				t.Errorf("%d hints after %v, want %d", got, look.at, look.want)
			}
		}
		err := <-result
		wantIs(t, err, context.DeadlineExceeded, errReason)
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
		wantIs(t, l.Unlock(), relock.ErrLost)
	})
}

// The process is stopped again and again for longer than its TTL, or Redis is further
// away: every grant has ended when its answer comes. A call asked anew without a
// pause, and took the lock from the others each time.
// Fails without the fix: it backs off, and its error says what is wrong.
func TestGrantsThatEndBeforeTheyCanBeUsedAreTold(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		var out lockedBuffer
		c, link := x.linked(relock.Logger(slog.New(slog.NewTextHandler(&out, nil))))
		l := c.NewLock("a", relock.TTL(100*time.Millisecond))
		asked := 0
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if runs(cmd, "acquire") && asked < 1000 {
				asked++
				x.suspend(time.Second)
			}
			return redistest.Pass
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, tried := l.TryAcquire(ctx, 20*time.Second)
		wantIs(t, tried, relock.ErrNotAcquired)
		err := l.Lock(ctx)
		wantIs(t, err, context.DeadlineExceeded)
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
		x.frees("a")
	})
}
