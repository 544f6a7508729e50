package quorum_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock/internal/quorum"
	"github.com/relock-go/relock/internal/virtual"
)

func TestAMajorityIsHadAtOnceThoughAMinorityHangs(t *testing.T) {
	run(t, func(t *testing.T) {
		all := newPrimaries(0, 0, 0, 0, 0)
		all[0].silence()
		all[3].silence()
		began := time.Now()
		h := gather(t, lockOn(all))
		if took := time.Since(began); took != 0 {
			t.Errorf("took %v, want none beside those that answer", took)
		}
		wantIs(t, h.Err(), nil)
		if err := h.Release(); err != nil || time.Since(began) != 0 {
			t.Errorf("the release: %v after %v", err, time.Since(began))
		}
		wantHeld(t, all)
	})
}

// Fails when what a primary grants after the end is kept: nobody would give it back.
func TestWhatIsGrantedAfterTheEndGoesBack(t *testing.T) {
	run(t, func(t *testing.T) {
		all := newPrimaries(0, 0, 0)
		all[1].silence()
		h := gather(t, lockOn(all))
		if err := h.Release(); err != nil {
			t.Error(err)
		}
		all[1].heal()
		synctest.Wait()
		if all[1].counter != 1 {
			t.Error("it has granted nothing: this test shows nothing")
		}
		wantHeld(t, all)
	})
}

// A lateHold is taken note of when the majority has its token, which it was asked for before.
type lateHold struct {
	*fakeHold
	made func()
}

func (h lateHold) Owner() string {
	h.made()
	return h.fakeHold.Owner()
}

// A latePrimary grants such a hold.
type latePrimary struct {
	*fakePrimary
	made func()
}

func (p latePrimary) Try(ctx context.Context, wait time.Duration) (quorum.Hold, error) {
	h, err := p.fakePrimary.Try(ctx, wait)
	if err != nil {
		return nil, err
	}
	return lateHold{h.(*fakeHold), p.made}, nil
}

// Fails when a grant that comes as the token is made goes back: without renewals nobody
// asks for it again, and the hold is lost with the next primary.
func TestAGrantThatComesAsTheTokenIsMadeCounts(t *testing.T) {
	run(t, func(t *testing.T) {
		all := newPrimaries(7, 0, 0)
		made := make(chan struct{})
		l := lockOn(all)
		l.Fixed = true
		l.Primaries[2] = latePrimary{all[2], func() { <-made }}
		h := gather(t, l)
		close(made)
		wantHeld(t, all, 0, 1, 2)
		if token, _ := h.Token(); all[2].counter != token {
			t.Errorf("the late primary has counted to %d, want the token %d", all[2].counter, token)
		}
		all[0].lose(errLost)
		synctest.Wait()
		wantIs(t, h.Err(), nil)
		if err := h.Release(); err != nil {
			t.Error(err)
		}
		wantHeld(t, all)
	})
}

// A hook is a primary, with what comes first when something is done for it, and how often it is asked.
type hook struct {
	*fakePrimary
	before func(spawned int)
	spawns int
	asked  atomic.Int32
}

func (p *hook) Spawn(fn func()) bool {
	p.spawns++
	p.before(p.spawns)
	return p.fakePrimary.Spawn(fn)
}

func (p *hook) Try(ctx context.Context, wait time.Duration) (quorum.Hold, error) {
	p.asked.Add(1)
	return p.fakePrimary.Try(ctx, wait)
}

// The first of three is had, the second is taken, and the third answers as the others are asked once more. Fails when
// it is asked a second time: a named owner would have two holds there, and give back one.
func TestAGrantThatComesAsOthersAreAskedIsNotAskedForAgain(t *testing.T) {
	run(t, func(t *testing.T) {
		all := newPrimaries(0, 0, 0)
		all[1].holder = &fakeHold{of: all[1], ended: make(chan struct{})}
		all[2].silence()
		l, last := lockOn(all), &hook{fakePrimary: all[2], before: func(int) {}}
		l.Primaries[1] = &hook{fakePrimary: all[1], before: func(spawned int) {
			if spawned > 1 {
				all[2].heal()
				synctest.Wait()
			}
		}}
		l.Primaries[2] = last
		h := gather(t, l)
		wantHeld(t, all, 0, 1, 2)
		if asked := last.asked.Load(); asked != 1 {
			t.Errorf("the last primary was asked %d times, want once", asked)
		}
		wantIs(t, h.Release(), nil)
		wantHeld(t, all, 1)
	})
}

// The first of three is had, the second is taken, and the third answers after the others were asked once more.
// Fails when it is asked a second time while the first request is under way: as above.
func TestAPrimaryThatHasNotAnsweredYetIsNotAskedAgain(t *testing.T) {
	run(t, func(t *testing.T) {
		all := newPrimaries(0, 0, 0)
		all[1].holder = &fakeHold{of: all[1], ended: make(chan struct{})}
		all[2].silence()
		l, last := lockOn(all), &hook{fakePrimary: all[2], before: func(int) {}}
		l.Primaries[2] = last
		time.AfterFunc(patience+time.Millisecond, all[2].heal)
		h := gather(t, l)
		wantHeld(t, all, 0, 1, 2)
		if asked := last.asked.Load(); asked != 1 {
			t.Errorf("the last primary was asked %d times, want once", asked)
		}
		wantIs(t, h.Release(), nil)
		wantHeld(t, all, 1)
	})
}

// A primary falls silent as it has granted the lock: it cannot be told of the token.
// Fails when the attempt ends with the error of its context, which its caller may not have.
func TestAnAttemptThatEndsAsTheTokenIsMadeSaysSo(t *testing.T) {
	run(t, func(t *testing.T) {
		all := newPrimaries(7, 0, 0)
		all[2].silence()
		l := lockOn(all)
		l.Primaries[1] = latePrimary{all[1], all[1].silence}
		ctx, cancel := context.WithTimeout(t.Context(), patience/5)
		defer cancel()
		_, err := l.Attempt(ctx, false)
		if wantIs(t, err, quorum.ErrFewAnswer); errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		all[1].heal()
		all[2].heal()
		wantHeld(t, all)
	})
}

func TestTooFewAnswersAreNoContention(t *testing.T) {
	run(t, func(t *testing.T) {
		all := newPrimaries(0, 0, 0, 0, 0)
		for _, p := range all[:3] {
			p.silence()
		}
		began := time.Now()
		_, err := lockOn(all).Attempt(t.Context(), false)
		wantIs(t, err, quorum.ErrFewAnswer)
		if took := time.Since(began); took != patience {
			t.Errorf("took %v, want the patience of %v", took, patience)
		}
		wantHeld(t, all)
	})
}

func TestAMajorityThatIsTakenIsContention(t *testing.T) {
	run(t, func(t *testing.T) {
		all := newPrimaries(0, 0, 0)
		h := gather(t, lockOn(all))
		all[2].silence()
		_, err := lockOn(all).Attempt(t.Context(), true)
		wantIs(t, err, errTaken)
		wantIs(t, h.Release(), nil)
	})
}

func TestWhatAMajorityRefusesForGoodIsTold(t *testing.T) {
	run(t, func(t *testing.T) {
		all := newPrimaries(0, 0, 0)
		all[0].final, all[2].final = errRefused, errRefused
		_, err := lockOn(all).Attempt(t.Context(), false)
		wantIs(t, err, errRefused)
		if errors.Is(err, quorum.ErrFewAnswer) {
			t.Errorf("got %v: asking again is in vain", err)
		}
		wantHeld(t, all)
	})
}

// handsOver asserts that the second has a majority as soon as the first releases its own.
func handsOver(t *testing.T, first *quorum.Majority, second <-chan *quorum.Majority) {
	t.Helper()
	began := time.Now()
	wantIs(t, first.Release(), nil)
	h := <-second
	if took := time.Since(began); took != 0 || h == nil {
		t.Fatalf("the next is %v after %v", h, took)
	}
	wantIs(t, h.Release(), nil)
}

// One contender has the first two primaries of three, another the last.
func TestWhoDoesNotHaveTheFirstThatAnswersQueuesThereWithNothing(t *testing.T) {
	run(t, func(t *testing.T) {
		all := newPrimaries(0, 0, 0)
		all[2].silence()
		l := lockOn(all)
		l.Fixed = true
		first := gather(t, l)
		virtual.Sleep(timeout) // it asks the last one no more
		all[2].heal()
		second := make(chan *quorum.Majority, 1)
		go func() {
			h, err := lockOn(all).Attempt(t.Context(), false)
			wantIs(t, err, nil)
			second <- h
		}()
		wantHeld(t, all, 0, 1)
		if all[2].counter != 1 {
			t.Error("the second had nothing to give back: this test shows nothing")
		}
		virtual.Sleep(time.Minute)
		wantHeld(t, all, 0, 1)
		handsOver(t, first, second)
		wantHeld(t, all)
	})
}

// Fails when calls queue at the first primary although it does not answer: they would give up, and begin again.
func TestWhereTheFirstPrimaryIsSilentCallsQueueAtTheNext(t *testing.T) {
	run(t, func(t *testing.T) {
		all := newPrimaries(0, 0, 0)
		all[0].silence()
		first := gather(t, lockOn(all))
		second := make(chan *quorum.Majority, 1)
		go func() {
			h, err := lockOn(all).Attempt(t.Context(), false)
			wantIs(t, err, nil)
			second <- h
		}()
		virtual.Sleep(time.Minute)
		wantHeld(t, all, 1, 2)
		handsOver(t, first, second)
		wantHeld(t, all)
	})
}

func TestAPrimaryThatFallsSilentIsQueuedAtNoMore(t *testing.T) {
	run(t, func(t *testing.T) {
		all := newPrimaries(0, 0, 0)
		h := gather(t, lockOn(all))
		synctest.Wait()
		failed := make(chan error)
		go func() {
			_, err := lockOn(all).Attempt(t.Context(), false)
			failed <- err
		}()
		virtual.Sleep(time.Minute)
		all[0].silence()
		began := time.Now()
		wantIs(t, <-failed, quorum.ErrFewAnswer)
		if took := time.Since(began); took > 4*patience {
			t.Errorf("left after %v, want little more than the patience of %v", took, patience)
		}
		all[0].heal()
		wantIs(t, h.Release(), nil)
	})
}

func TestAnAttemptEndsWithItsContextAndLeavesNothing(t *testing.T) {
	run(t, func(t *testing.T) {
		all := newPrimaries(0, 0, 0)
		h := gather(t, lockOn(all))
		synctest.Wait()
		for _, p := range all[:2] {
			p.silence() // else the holder takes it again at once
			p.lose(errLost)
		}
		for _, after := range []time.Duration{time.Millisecond, patience / 2} {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			began := time.Now()
			if _, err := lockOn(all).Attempt(ctx, false); err == nil {
				t.Error("no error without a majority")
			}
			if took := time.Since(began); took != after {
				t.Errorf("took %v, want the %v of the context", took, after)
			}
			cancel()
		}
		all[0].heal()
		all[1].heal()
		wantIs(t, h.Release(), errLost)
		virtual.Sleep(timeout)
		wantHeld(t, all)
	})
}

// unsure is a primary that does not say for long whether it knows the token.
type unsure struct{ *fakePrimary }

func (p unsure) Try(ctx context.Context, wait time.Duration) (quorum.Hold, error) {
	h, err := p.fakePrimary.Try(ctx, wait)
	return unsureHold{h}, err
}

type unsureHold struct{ quorum.Hold }

func (unsureHold) Raise(context.Context, time.Duration, int64) bool {
	virtual.Sleep(time.Minute)
	return false
}

// TestAHoldNeedsAMajorityThatKnowsItsToken: all primaries have granted it, and only one knows the
// largest token.
func TestAHoldNeedsAMajorityThatKnowsItsToken(t *testing.T) {
	run(t, func(t *testing.T) {
		all := newPrimaries(7, 0, 3)
		l := lockOn(all)
		for i, p := range all {
			l.Primaries[i] = unsure{p}
		}
		_, err := l.Attempt(t.Context(), false)
		wantIs(t, err, quorum.ErrFewAnswer)
		virtual.Sleep(time.Hour)
		wantHeld(t, all)
	})
}
