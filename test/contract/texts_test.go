package contract_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
)

// saysOnce reports whether an error is one line that begins so and tells of one loss. Whether its reason is the
// message of a ForceUnlock or the renewal after it depends on which comes first.
func saysOnce(err error, begin string) bool {
	text := err.Error()
	return strings.HasPrefix(text, begin) && !strings.Contains(text, "\n") && strings.Count(text, "lost") == 1
}

// Fails when the error of a call whose function returned the loss itself has a line break, or says the loss twice.
func TestAFunctionThatReturnsTheLossIsToldOfItOnce(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, other := x.Client(), x.Client()
		work := func(ctx context.Context) error {
			removed, err := other.NewLock("a").ForceUnlock(t.Context())
			if err != nil || !removed {
				t.Errorf("removed: %v, %v", removed, err)
			}
			<-ctx.Done()
			return context.Cause(ctx)
		}
		for name, call := range map[string]func() error{
			"Do": func() error { return c.NewLock("a").Do(t.Context(), work) },
			"TryDo": func() error {
				_, err := c.NewLock("a").TryDo(t.Context(), time.Second, work)
				return err
			},
			"Once": func() error {
				_, err := c.Once(t.Context(), "a", time.Hour, work)
				return err
			},
			"Multi": func() error { return relock.NewMulti(c.NewLock("a")).Do(t.Context(), work) },
		} {
			err := call()
			rig.WantIs(t, err, relock.ErrLost)
			rig.WantIs(t, err, relock.ErrNotHeld)
			if !saysOnce(err, `relock: lock "a" was lost: `) {
				t.Errorf("%s returns %q", name, err)
			}
			_, err = other.NewLock("a").ForceUnlock(t.Context()) // the rest of Once
			rig.Must(t, err)
		}
	})
}

// Fails when the function's own error is left out, or parted from the loss by a line break.
func TestAFunctionsOwnErrorAndTheLossAreOneLine(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, own := x.Client(), errors.New("no paper")
		err := c.NewLock("a").Do(t.Context(), func(ctx context.Context) error {
			_, err := x.Client().NewLock("a").ForceUnlock(t.Context())
			rig.Must(t, err)
			<-ctx.Done()
			return own
		})
		rig.WantIs(t, err, own)
		rig.WantIs(t, err, relock.ErrLost)
		if !saysOnce(err, `no paper; relock: lock "a" was lost: `) {
			t.Errorf("Do returns %q", err)
		}
	})
}

// Fails when a refusal names no remedy.
func TestRefusalsSayWhatToDoInstead(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		ctx := relock.WithOwner(t.Context(), "me")
		rw := c.NewRWLock("a")
		rig.Must(t, rw.RLock(ctx))
		for name, call := range map[string]func() error{
			"unlock its read hold first": func() error { return c.NewRWLock("a").Lock(ctx) },
			"use one kind for a name":    func() error { return c.NewLock("a").Lock(ctx) },
			"Once takes no Owner": func() error {
				_, err := c.Once(ctx, "b", time.Hour, func(context.Context) error { return nil }, relock.Owner("me"))
				return err
			},
		} {
			if err := call(); err == nil || !strings.Contains(err.Error(), name) || strings.Count(err.Error(), `"a"`) > 1 {
				t.Errorf("%v, want one that says: %s", err, name)
			}
		}
		rig.Must(t, rw.RUnlock())
	})
}

// Fails when a call that waits for an outer call of its own, through another handle, is not told what helps.
func TestACallThatWaitsForAnotherHandleOfItsClientIsToldOfOwners(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		outer := rig.MustAcquire(t, c.NewLock("a"))
		for wait, told := range map[time.Duration]bool{time.Second: false, time.Minute: true} {
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			err := c.NewLock("a").Lock(ctx)
			cancel()
			rig.WantIs(t, err, context.DeadlineExceeded)
			if strings.Contains(err.Error(), "relock.WithOwner") != told {
				t.Errorf("after %v: %v, want a hint: %v", wait, err, told)
			}
			_, err = c.NewLock("a").TryAcquire(t.Context(), wait)
			rig.WantIs(t, err, relock.ErrNotAcquired)
			if strings.Contains(err.Error(), "relock.WithOwner") != told {
				t.Errorf("TryAcquire of %v: %v, want a hint: %v", wait, err, told)
			}
		}
		rig.Must(t, outer.Release())
		other := rig.MustAcquire(t, x.Client().NewLock("a"))
		if _, err := c.NewLock("a").TryAcquire(t.Context(), time.Minute); err == nil || strings.Contains(err.Error(), "relock.WithOwner") {
			t.Errorf("another client holds: %v, want no hint", err)
		}
		rig.Must(t, other.Release())
	})
}

// Fails when a ticket under way looks like a holder whose label was lost.
func TestInfoTellsATicketFromAHolder(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		l := c.NewLock("a")
		detached := func(want bool) {
			t.Helper()
			info, err := l.Info(t.Context())
			rig.Must(t, err)
			if len(info.Holders) != 1 || info.Holders[0].Detached != want {
				t.Errorf("%+v, want one holder, detached: %v", info.Holders, want)
			}
		}
		h := rig.MustAcquire(t, l)
		detached(false)
		ticket, err := h.Detach(t.Context(), time.Minute)
		rig.Must(t, err)
		detached(true)
		h, err = c.Resume(t.Context(), ticket)
		rig.Must(t, err)
		detached(false)
		rig.Must(t, h.Release())
	})
}
