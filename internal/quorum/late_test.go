package quorum_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/relock-go/relock/internal/quorum"
	"github.com/relock-go/relock/internal/virtual"
)

// A far primary's answers are under way for a while.
type far struct{ *fakePrimary }

func (p far) Try(ctx context.Context, wait time.Duration) (quorum.Hold, error) {
	h, err := p.fakePrimary.Try(ctx, wait)
	if wait > 0 {
		virtual.Sleep(time.Millisecond)
	}
	return h, err
}

// queued has an attempt queue at the first of three primaries, which it gets after a second,
// and returns how it ends, with the others as they are then.
func queued(t *testing.T, others func(p *fakePrimary)) error {
	t.Helper()
	all := newPrimaries(0, 0, 0)
	l := lockOn(all)
	for i, p := range all {
		p.holder = &fakeHold{of: p, ended: make(chan struct{})}
		if i > 0 {
			l.Primaries[i] = far{p}
		}
	}
	time.AfterFunc(time.Second, func() {
		for _, p := range all[1:] {
			others(p)
		}
		all[0].forget()
	})
	began := time.Now()
	_, err := l.Attempt(t.Context(), false)
	if took := time.Since(began) - time.Second; took < patience || took > 2*patience {
		t.Errorf("it had the first primary for %v, want for the patience of %v", took, patience)
	}
	for _, p := range all {
		p.heal()
	}
	wantHeld(t, all, 1, 2)
	return err
}

// Fails when the attempt ends in the instant in which primaries that are taken say so.
func TestAMajorityThatIsTakenAfterTheQueueIsContention(t *testing.T) {
	run(t, func(t *testing.T) {
		err := queued(t, func(*fakePrimary) {})
		if wantIs(t, err, errTaken); errors.Is(err, quorum.ErrFewAnswer) {
			t.Errorf("got %v", err)
		}
	})
}

// Fails when what they have said before the queue, however long that was, is taken for an answer.
func TestTooFewAnswersAfterTheQueueAreNoContention(t *testing.T) {
	run(t, func(t *testing.T) {
		err := queued(t, (*fakePrimary).silence)
		if wantIs(t, err, quorum.ErrFewAnswer); errors.Is(err, errTaken) {
			t.Errorf("got %v", err)
		}
	})
}
