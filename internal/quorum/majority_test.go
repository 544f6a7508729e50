package quorum_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock/internal/quorum"
	"github.com/relock-go/relock/internal/virtual"
)

// Fails when the next majority could be of primaries that have seen no token of this size.
func TestTheLargestTokenIsTheMajoritysAndAllOfItKnowIt(t *testing.T) {
	run(t, func(t *testing.T) {
		all := newPrimaries(300, 10, 20)
		all[2].silence() // else which two are the majority is chance
		h := gather(t, lockOn(all))
		all[2].heal() // and what is granted late is told as well
		synctest.Wait()
		token, owner := h.Token()
		if token != 301 || owner != "owner 301" {
			t.Errorf("token %d of %q, want 301, and whose it is", token, owner)
		}
		for i, p := range all {
			if p.counter < token {
				t.Errorf("primary %d has counted to %d, and would grant less than %d", i, p.counter, token)
			}
		}
		wantIs(t, h.Release(), nil)
	})
}

func TestAPrimaryThatDoesNotKnowTheTokenDoesNotCount(t *testing.T) {
	run(t, func(t *testing.T) {
		all := newPrimaries(10, 300, 20) // of any two, one has to be told
		l := lockOn(all)
		for i, p := range all {
			l.Primaries[i] = deaf{p}
		}
		_, err := l.Attempt(t.Context(), false)
		wantIs(t, err, quorum.ErrFewAnswer)
		wantHeld(t, all)
	})
}

func TestItIsLostAtTheInstantUntilWhichItWasCertain(t *testing.T) {
	run(t, func(t *testing.T) {
		all := newPrimaries(0, 0, 0)
		h := gather(t, lockOn(all))
		virtual.Sleep(time.Minute)
		all[0].silence()
		virtual.Sleep(time.Second)
		wantIs(t, h.Err(), nil)
		all[1].silence()
		virtual.Sleep(lease / 2)
		until := h.TrustedUntil()
		<-h.Lost()
		if late := time.Since(until); late < 0 || late > time.Millisecond {
			t.Errorf("lost %v after the instant until which it was certain", late)
		}
		wantIs(t, h.Err(), errLost)
		if !h.TrustedUntil().IsZero() {
			t.Errorf("trusted until %v after the loss", h.TrustedUntil())
		}
		for _, p := range all[:2] {
			p.heal()
		}
		wantIs(t, h.Release(), errLost)
		wantIs(t, h.Err(), errNotHeld)
		virtual.Sleep(time.Minute)
		wantHeld(t, all)
	})
}

// A loss that primaries tell of is not found by the next look.
func TestItIsLostAtOnceWhereItsMajorityIs(t *testing.T) {
	run(t, func(t *testing.T) {
		all, h := fixedOn(t)
		told := make(chan error, 1)
		context.AfterFunc(h.End(), func() { told <- context.Cause(h.End()) })
		all[0].lose(errLost)
		synctest.Wait()
		wantIs(t, h.Err(), nil)
		began := time.Now()
		all[1].lose(errLost)
		<-h.Lost()
		wantIs(t, <-told, errLost)
		if took := time.Since(began); took != 0 {
			t.Errorf("lost after %v", took)
		}
		wantIs(t, h.Release(), errLost)
		wantHeld(t, all)
	})
}

func TestPrimariesThatComeBackAreTakenAgain(t *testing.T) {
	run(t, func(t *testing.T) {
		all := newPrimaries(0, 0, 0)
		h := gather(t, lockOn(all))
		virtual.Sleep(time.Second) // all are had
		for _, p := range all {
			p.lose(errLost)
			virtual.Sleep(time.Second)
			wantIs(t, h.Err(), nil)
			wantHeld(t, all, 0, 1, 2)
		}
		wantIs(t, h.Release(), nil)
		wantHeld(t, all)
	})
}

// The others answer once one has refused.
// Fails when the attempt takes a request for under way that has been answered: that primary is asked no more.
func TestAPrimaryThatRefusedTheAttemptIsTakenLater(t *testing.T) {
	run(t, func(t *testing.T) {
		all := newPrimaries(7, 0, 0)
		all[2].final = errRefused
		for _, p := range all[:2] {
			p.silence()
			time.AfterFunc(time.Millisecond, p.heal)
		}
		h := gather(t, lockOn(all))
		all[2].change(func() { all[2].final = nil })
		virtual.Sleep(time.Second)
		wantHeld(t, all, 0, 1, 2)
		wantIs(t, h.Release(), nil)
		wantHeld(t, all)
	})
}

func TestWithoutRenewalsNoPrimaryIsTakenAgain(t *testing.T) {
	run(t, func(t *testing.T) {
		all, h := fixedOn(t)
		all[0].lose(errLost)
		virtual.Sleep(lease / 2)
		wantIs(t, h.Err(), nil)
		wantHeld(t, all, 1, 2)
		wantIs(t, h.Release(), nil)
		wantHeld(t, all)
	})
}

// fixedOn has a majority that is all of three primaries, of which none is taken again.
func fixedOn(t *testing.T) (all []*fakePrimary, h *quorum.Majority) {
	t.Helper()
	all = newPrimaries(0, 0, 0)
	l := lockOn(all)
	l.Fixed = true
	all[2].silence() // what is granted as the majority is made may go back
	h = gather(t, l)
	all[2].heal()
	wantHeld(t, all, 0, 1, 2)
	return all, h
}

func TestNothingIsTakenAgainAfterTheLongestHold(t *testing.T) {
	run(t, func(t *testing.T) {
		all := newPrimaries(0, 0, 0)
		l := lockOn(all)
		l.MaxHold = time.Minute
		h := gather(t, l)
		virtual.Sleep(l.MaxHold)
		all[0].lose(errLost)
		virtual.Sleep(lease / 2)
		wantHeld(t, all, 1, 2)
		wantIs(t, h.Err(), nil)
		wantIs(t, h.Release(), nil)
	})
}

// Fails when a primary that is taken again begins a longest hold of its own, and when what
// is left of a lost hold stays held for a holder that hangs.
func TestTheLongestHoldIsTheMajoritys(t *testing.T) {
	run(t, func(t *testing.T) {
		all := newPrimaries(0, 0, 0)
		l := lockOn(all)
		l.MaxHold = time.Minute
		h := gather(t, l)
		wantHeld(t, all, 0, 1, 2)
		began := time.Now()
		for _, p := range all[:2] {
			virtual.Sleep(20 * time.Second)
			p.lose(errLost)
		}
		<-h.Lost()
		if lasted := time.Since(began); lasted != l.MaxHold+lease {
			t.Errorf("it was held for %v, want %v and a lease of %v", lasted, l.MaxHold, lease)
		}
		wantIs(t, h.Err(), errLost)
		wantHeld(t, all)
		wantIs(t, h.Release(), errLost)
	})
}

// Fails when the longest hold begins with the wait: primaries that come back are not taken.
func TestTheLongestHoldBeginsWithTheHold(t *testing.T) {
	run(t, func(t *testing.T) {
		all := newPrimaries(0, 0, 0)
		first, l := gather(t, lockOn(all)), lockOn(all)
		l.MaxHold = time.Minute
		wantHeld(t, all, 0, 1, 2)
		time.AfterFunc(2*l.MaxHold, func() { wantIs(t, first.Release(), nil) })
		h := gather(t, l)
		for _, p := range all {
			virtual.Sleep(time.Second)
			p.lose(errLost)
		}
		virtual.Sleep(time.Second)
		wantIs(t, h.Err(), nil)
		wantHeld(t, all, 0, 1, 2)
		wantIs(t, h.Release(), nil)
	})
}

func TestTheLossByClosedClientsSaysSo(t *testing.T) {
	run(t, func(t *testing.T) {
		all := newPrimaries(0, 0, 0)
		h := gather(t, lockOn(all))
		virtual.Sleep(time.Second) // all are had
		for _, p := range all[1:] {
			p.change(func() { p.closed = true })
			p.lose(errClosed)
		}
		<-h.Lost()
		wantIs(t, h.Err(), errLost)
		wantIs(t, h.Err(), errClosed)
		wantIs(t, h.Release(), errClosed)
	})
}

// Fails when it is forgotten that a client was closed, from when its hold is dropped until its
// primary is known not to be had again.
func TestTheLossByAClientThatWasClosedWhileItWasAskedSaysSo(t *testing.T) {
	run(t, func(t *testing.T) {
		all := newPrimaries(0, 0, 0)
		h := gather(t, lockOn(all))
		virtual.Sleep(time.Second) // all are had
		all[1].silence()
		all[1].lose(errClosed)
		synctest.Wait() // it is asked again
		all[2].lose(errClosed)
		<-h.Lost()
		wantIs(t, h.Err(), errClosed)
		wantIs(t, h.Release(), errClosed)
	})
}

func TestAReleaseIsUnconfirmedWhereNobodyElseCanHoldYet(t *testing.T) {
	run(t, func(t *testing.T) {
		all := newPrimaries(0, 0, 0)
		for _, hang := range []int{1, 2} {
			h := gather(t, lockOn(all))
			virtual.Sleep(time.Second) // all are had
			for _, p := range all[:hang] {
				p.silence()
			}
			began := time.Now()
			err, took := h.Release(), time.Duration(0)
			if hang > 1 {
				took = timeout
				wantIs(t, err, errUnconfirmed)
			} else if err != nil {
				t.Errorf("%v, though a majority has confirmed it", err)
			}
			if since := time.Since(began); since != took {
				t.Errorf("%d hang: released after %v, want %v", hang, since, took)
			}
			virtual.Sleep(timeout)
			for _, p := range all {
				p.heal()
			}
			wantHeld(t, all)
		}
	})
}

// A mute primary grants, and falls silent.
type mute struct{ *fakePrimary }

func (p mute) Try(ctx context.Context, wait time.Duration) (quorum.Hold, error) {
	h, err := p.fakePrimary.Try(ctx, wait)
	p.silence()
	return h, err
}

// Fails when an attempt waits for its patience though what it had is given back.
func TestAnAttemptThatFailsEndsOnceWhatItHadIsGivenBack(t *testing.T) {
	run(t, func(t *testing.T) {
		all := newPrimaries(0, 0) // both are needed, so what one has granted is waited for
		all[1].holder = &fakeHold{of: all[1], ended: make(chan struct{})}
		l := lockOn(all)
		l.Primaries[0] = slow{all[0]}
		began := time.Now()
		_, err := l.Attempt(t.Context(), true)
		wantIs(t, err, errTaken)
		if took := time.Since(began); took != time.Millisecond {
			t.Errorf("took %v, want the millisecond of the release", took)
		}
		wantHeld(t, all, 1)
	})
}

// The votes of two primaries are split, and that which was had does not hear that it is given back.
func TestOneAttemptEndsThoughWhatItHadDoesNot(t *testing.T) {
	run(t, func(t *testing.T) {
		all := newPrimaries(0, 0)
		other := gather(t, lockOn(all[1:]))
		l := lockOn(all)
		l.Primaries[0] = mute{all[0]}
		began := time.Now()
		_, err := l.Attempt(t.Context(), true)
		wantIs(t, err, errTaken)
		if took := time.Since(began); took > patience {
			t.Errorf("one attempt took %v, want %v at most", took, patience)
		}
		all[0].heal()
		wantIs(t, other.Release(), nil)
		wantHeld(t, all)
	})
}

// Fails when the end of a primary's hold, whose hook ends its goroutine, is waited for.
func TestAReleaseWhoseHookEndsItsGoroutineReturns(t *testing.T) {
	run(t, func(t *testing.T) {
		all := newPrimaries(0, 0, 0)
		h := gather(t, lockOn(all))
		for _, p := range all {
			p.exits = true
		}
		wantIs(t, h.Release(), errUnconfirmed)
	})
}
