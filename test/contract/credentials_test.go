package contract_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// Fails when WRONGPASS ends the calls of a client that Redis has answered before: a rotation of
// its password refuses it until both sides have the new one.
func TestCallsWaitOutTheRotationOfAPassword(t *testing.T) {
	for _, takes := range []time.Duration{2 * time.Second, 15 * time.Second} {
		t.Run(takes.String(), func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) { waitOut(t, rig.NewRotation(x), takes) })
		})
	}
}

func waitOut(t *testing.T, r *rig.Rotation, takes time.Duration) {
	client := func() *relock.Client { return r.Lab.ClientOver(r.Redis()) }
	held, ended := rig.MustAcquire(t, client().NewLock("held")), rig.MustAcquire(t, client().NewLock("ended"))
	for _, other := range []*relock.Lock{client().NewLock("plain"), client().NewLock("fair", relock.Fair()), client().NewLock("election", relock.Fair())} {
		h := rig.MustAcquire(t, other)
		time.AfterFunc(time.Minute, func() { _ = h.Release() })
	}
	c := client()
	rig.End(t, rig.MustAcquire(t, c.NewLock("before")))
	calls := map[string]rig.Going{
		"a waiter":          rig.Beside(func() error { return c.NewLock("plain").Lock(t.Context()) }),
		"one of a fair one": rig.Beside(func() error { return c.NewLock("fair", relock.Fair()).Lock(t.Context()) }),
		"a candidate": rig.Beside(func() error {
			return c.NewElection("election").Run(t.Context(), func(context.Context, relock.Term) error { return nil })
		}),
	}
	virtual.Sleep(5 * time.Second)
	r.Begin()
	time.AfterFunc(takes, func() { r.Learn("new") })
	calls["a new call"] = rig.Beside(func() error { return c.NewLock("new").Lock(t.Context()) })
	calls["a new call that asks for replicas"] = rig.Beside(func() error {
		err := c.NewLock("replicated", relock.Replicas(1, time.Second)).Lock(t.Context())
		if errors.Is(err, relock.ErrReplicas) { // the server has none, and said so once it took the password
			return nil
		}
		return err
	})
	calls["a try"] = rig.Beside(func() error {
		h, err := c.NewLock("tried").TryAcquire(t.Context(), 2*takes)
		if err == nil {
			err = h.Release()
		}
		return err
	})
	err := ended.Release()
	if takes < 5*time.Second {
		rig.Must(t, err)
	} else if rig.WantIs(t, err, relock.ErrUnconfirmed); strings.Contains(err.Error(), "will not be") {
		t.Errorf("Release = %v, though it goes on", err)
	}
	virtual.Sleep(2 * time.Minute)
	for who, call := range calls {
		if err := rig.Returned(t, call); err != nil {
			t.Errorf("%s: %v", who, err)
		}
	}
	if info, err := c.NewLock("ended").Info(t.Context()); err != nil || len(info.Holders) > 0 {
		t.Errorf("what was released has %v, %v, want no holder", info.Holders, err)
	}
	rig.Must(t, held.Release())
}

// Fails when a refusal that lasts is kept from a call that has an end, or is told as a taken lock.
func TestACallThatEndsDuringARotationSaysWhatRedisRefused(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		r := rig.NewRotation(x)
		c := x.ClientOver(r.Redis())
		rig.End(t, rig.MustAcquire(t, c.NewLock("a")))
		r.Begin()
		_, err := c.NewLock("a").TryAcquire(t.Context(), time.Second)
		rig.WantIs(t, err, relock.ErrUnavailable)
		rig.WantNot(t, err, relock.ErrNotAcquired)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		late := c.NewLock("a").Lock(ctx)
		rig.WantIs(t, late, relock.ErrUnavailable, context.DeadlineExceeded)
		for _, err := range []error{err, late} {
			if !strings.Contains(err.Error(), "WRONGPASS") || !strings.Contains(err.Error(), "accepted this client before") {
				t.Errorf("%v; want one that says WRONGPASS, and that it accepted this client before", err)
			}
		}
	})
}

// Fails when a client that never had an answer waits for a password that is wrong.
func TestAWrongPasswordIsToldAtOnceByTheFirstCall(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		r := rig.NewRotation(x)
		r.Learn("wrong")
		began := time.Now()
		err := rig.Open(t, r.Redis()).NewLock("a").Lock(t.Context())
		if err == nil || !strings.Contains(err.Error(), "WRONGPASS") || time.Since(began) > time.Second {
			t.Errorf("Lock = %v after %v, want WRONGPASS at once", err, time.Since(began))
		}
		if strings.Contains(err.Error(), "needed:") || !strings.Contains(err.Error(), "check the user and the password") {
			t.Errorf("Lock = %v, want one that sends to the password, and not to permissions", err)
		}
		rig.WantNot(t, err, relock.ErrUnavailable)
	})
}

// Fails when Locks takes a rotation for a refusal that lasts, and asks for a permission.
func TestLocksTellsOfARotationAsOfAnOutage(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		r := rig.NewRotation(x)
		c := x.ClientOver(r.Redis())
		wantListed(t, c, "") // the only thing that it has asked
		r.Begin()
		n := 0
		for _, err := range c.Locks(t.Context(), "") {
			n++
			rig.WantIs(t, err, relock.ErrUnavailable)
			if err == nil || strings.Contains(err.Error(), "needed: scan") || !strings.Contains(err.Error(), "WRONGPASS") {
				t.Errorf("Locks: %v, want what redis refused", err)
			}
		}
		if n != 1 {
			t.Errorf("%d values, want one error", n)
		}
	})
}
