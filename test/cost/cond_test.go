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

// A dormitory is a lock on a condition of which n calls wait, each of which waits again
// when it is woken.
type dormitory struct {
	*scale
	name string
	n    int
	c    *relock.Client
	rest sync.WaitGroup
}

func (s *scale) asleep(n int) *dormitory {
	s.round++
	d := &dormitory{scale: s, name: fmt.Sprint("asleep ", n, ", ", s.round), n: n, c: s.new()}
	ctx, cancel := context.WithCancel(s.t.Context())
	for range n {
		d.rest.Go(func() { d.sleep(ctx) })
	}
	s.t.Cleanup(func() { cancel(); d.rest.Wait() })
	d.all()
	return d
}

func (d *dormitory) lock(c *relock.Client) *relock.Lock {
	return c.NewLock(d.name, relock.Fair(), relock.TTL(time.Hour))
}

// sleep waits again and again.
func (d *dormitory) sleep(ctx context.Context) {
	l := d.lock(d.c)
	cond := l.NewCond("c")
	if l.Lock(ctx) != nil {
		return
	}
	for cond.Wait(ctx) == nil {
	}
	_ = l.Unlock()
}

// all returns when all of them wait.
func (d *dormitory) all() {
	cond := d.lock(d.c).NewCond("c")
	rig.Soon(d.t, func() string {
		all, err := cond.Waiters(context.Background())
		if err != nil || len(all) != d.n {
			return fmt.Sprintf("%d of %d wait, error %v", len(all), d.n, err)
		}
		return ""
	})
}

// conditionCosts are microseconds of server time for each script: of a signal to the first, who
// waits again, and of a wait that is given up.
type conditionCosts struct{ signal, cancel float64 }

func (s *scale) conditions(n int) (m conditionCosts) {
	d := s.asleep(n)
	l := d.lock(s.new())
	cond := l.NewCond("c")
	m.signal = s.cost(func() {
		for range 10 {
			rig.Must(s.t, l.Lock(s.t.Context()))
			rig.Must(s.t, cond.Signal(s.t.Context()))
			rig.Must(s.t, l.Unlock())
		}
	})
	d.all()
	m.cancel = s.cost(func() {
		for range 10 {
			rig.Must(s.t, l.Lock(s.t.Context()))
			_, err := cond.WaitFor(s.t.Context(), time.Millisecond)
			rig.Must(s.t, err)
			rig.Must(s.t, l.Unlock())
		}
	})
	return m
}

// Fails when who waits on a condition is kept in one text, which each script copies.
func TestAConditionCostsTheSameAmongTwoThousandWaiters(t *testing.T) {
	s := newScale(t)
	repeatedly(t, "a script costs more than twice as much among many waiters", func(best minima) bool {
		of := func(n int) conditionCosts {
			m := s.conditions(n)
			return conditionCosts{best.least(fmt.Sprint("signal ", n), m.signal), best.least(fmt.Sprint("cancel ", n), m.cancel)}
		}
		few, many := of(10), of(2_000)
		t.Logf("microseconds of server time a script: signal and wait again %.1f among 10 waiters, %.1f among 2,000; wait and give up %.1f and %.1f",
			few.signal, many.signal, few.cancel, many.cancel)
		return many.signal <= 2*few.signal && many.cancel <= 2*few.cancel
	})
}
