package cost_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
)

// drawn is a semaphore of n permits that are all in use, with n waiters behind.
func (s *scale) drawn(n int) (holds []*relock.Hold, next <-chan *relock.Hold, stop func()) {
	s.round++
	name, c := fmt.Sprint("drawn by ", n, ", ", s.round), s.new()
	one := func() *relock.Lock { return c.NewSemaphore(name, n, relock.TTL(time.Hour)) }
	for range n {
		holds = append(holds, rig.MustAcquire(s.t, one()))
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	granted := make(chan *relock.Hold)
	var waiters sync.WaitGroup
	for range n {
		waiters.Go(func() {
			for ctx.Err() == nil { // again and again, so that the queue stays as long as it is
				if h, err := one().Acquire(ctx); err == nil {
					granted <- h
				}
			}
		})
	}
	s.waitFor(name, n)
	return holds, granted, func() {
		cancel()
		go func() { waiters.Wait(); close(granted) }()
		for h := range granted {
			_ = h.Release()
		}
	}
}

// permitCosts are what scripts cost among so many holders, and as many waiters where it is
// not a pair.
type permitCosts struct{ pair, cancel, handOff float64 }

func (s *scale) permits(n int) (m permitCosts) {
	holds, next, stop := s.drawn(n)
	name := holds[0].Name()
	wider, passer := s.new().NewSemaphore(name, n+1, relock.TTL(time.Hour)), s.new().NewSemaphore(name, n, relock.TTL(time.Hour))
	m.cancel = s.cost(func() {
		for range 10 {
			// It queues, or leaves before that: nothing is granted.
			if got, _ := passer.TryLock(s.t.Context(), 2*time.Millisecond); got {
				s.t.Error("got a permit, and there is none")
			}
		}
	})
	s.waitFor(name, n)
	m.handOff = s.cost(func() {
		for i := range 10 {
			rig.Must(s.t, holds[i].Release())
			holds[i] = <-next
		}
	})
	stop()
	s.waitFor(name, 0)
	m.pair = s.cost(func() {
		for range 20 {
			rig.Must(s.t, wider.Lock(s.t.Context()))
			rig.Must(s.t, wider.Unlock())
		}
	})
	for _, h := range holds {
		rig.Must(s.t, h.Release())
	}
	return m
}

// Fails when a script adds up what the holders use, or walks the queue.
func TestASemaphoreCostsTheSameAmongFiveThousandHolders(t *testing.T) {
	s := newScale(t)
	repeatedly(t, "a script costs more than twice as much among many holders", func(best minima) bool {
		of := func(n int) permitCosts {
			m := s.permits(n)
			least := func(what string, cost float64) float64 { return best.least(fmt.Sprint(what, n), cost) }
			return permitCosts{least("pair", m.pair), least("cancel", m.cancel), least("hand-off", m.handOff)}
		}
		few, many := of(10), of(5_000)
		t.Logf("microseconds of server time a script: lock or unlock %.1f among 10 holders, %.1f among 5,000; enqueue and cancel %.1f and %.1f; hand-off %.1f and %.1f",
			few.pair, many.pair, few.cancel, many.cancel, few.handOff, many.handOff)
		return many.pair <= 2*few.pair && many.cancel <= 2*few.cancel && many.handOff <= 2*few.handOff
	})
}

// Fails when a semaphore that nobody else wants is asked for the general way.
func TestASemaphoresPairCostsWhatALocksDoes(t *testing.T) {
	s := newScale(t)
	c := s.new()
	pair := func(l *relock.Lock) float64 {
		return s.cost(func() {
			for range 100 {
				rig.Must(t, l.Lock(t.Context()))
				rig.Must(t, l.Unlock())
			}
		})
	}
	repeatedly(t, "a semaphore's pair costs more than 1.3 of a lock's", func(best minima) bool {
		lock, semaphore := best.least("lock", pair(c.NewLock("lock"))), best.least("semaphore", pair(c.NewSemaphore("semaphore", 5, relock.Weight(2))))
		t.Logf("microseconds of server time a script: %.2f of a lock, %.2f of a semaphore", lock, semaphore)
		return semaphore <= 1.3*lock
	})
}
