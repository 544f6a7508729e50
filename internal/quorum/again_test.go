package quorum_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock/internal/quorum"
	"github.com/relock-go/relock/internal/virtual"
)

// slip has the primary forget what it has granted. The hold is over, and its context has yet to end.
func (p *fakePrimary) slip() { p.change(func() { p.holder.lost, p.holder = errLost, nil }) }

// Two of three are held. One of them is lost, and then the third is granted, before anybody has asked: as after a pause,
// in which another owner could have held.
// Fails when what is granted after a loss makes up for it.
func TestAPrimaryThatIsTakenAgainMakesUpForNoLoss(t *testing.T) {
	run(t, func(t *testing.T) {
		all := newPrimaries(0, 0, 0)
		all[2].silence()
		h := gather(t, lockOn(all))
		virtual.Sleep(time.Second)
		wantHeld(t, all, 0, 1)
		all[0].slip()
		all[2].heal()
		synctest.Wait()
		wantIs(t, h.Err(), errLost)
		wantHeld(t, all)
		wantIs(t, h.Release(), errLost)
	})
}

// A quitter is a primary whose hook ends the goroutine of each request.
type quitter struct {
	*fakePrimary
	quits atomic.Bool
}

func (p *quitter) Try(ctx context.Context, wait time.Duration) (quorum.Hold, error) {
	if p.quits.Load() {
		runtime.Goexit()
	}
	return p.fakePrimary.Try(ctx, wait)
}

// Fails when a primary whose request has ended with its goroutine is asked no more, or not within a second.
func TestAPrimaryWhoseHookEndsItsGoroutineIsAskedAgain(t *testing.T) {
	for _, ttl := range []time.Duration{lease, time.Minute} {
		run(t, func(t *testing.T) {
			all := newPrimaries(0, 0, 0)
			l, last := lockOn(all), &quitter{fakePrimary: all[2]}
			l.TTL, l.Primaries[2] = ttl, last
			h := gather(t, l)
			wantHeld(t, all, 0, 1, 2)
			last.quits.Store(true)
			all[2].lose(errLost)
			virtual.Sleep(time.Second)
			wantHeld(t, all, 0, 1)
			last.quits.Store(false)
			virtual.Sleep(time.Second)
			wantHeld(t, all, 0, 1, 2)
			wantIs(t, h.Release(), nil)
		})
	}
}

// Fails when an attempt waits for a request that has ended with its goroutine.
func TestAnAttemptWaitsForNoHookThatHasEndedItsGoroutine(t *testing.T) {
	run(t, func(t *testing.T) {
		all := newPrimaries(0, 0, 0)
		l := lockOn(all)
		for i := range all {
			last := &quitter{fakePrimary: all[i]}
			last.quits.Store(i > 0)
			l.Primaries[i] = last
		}
		began := time.Now()
		_, err := l.Attempt(t.Context(), true)
		wantIs(t, err, quorum.ErrFewAnswer)
		if took := time.Since(began); took != 0 {
			t.Errorf("took %v", took)
		}
	})
}
