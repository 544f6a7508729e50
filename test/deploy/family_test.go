package deploy_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// sleeps has a call wait on the condition c of a lock of the case, for which it locks first.
func (d *deployed) sleeps(c *relock.Client, opts ...relock.LockOption) rig.Going {
	d.Helper()
	l := c.NewLock(d.name, opts...)
	cond := l.NewCond("c")
	before := len(waitersOn(d.T, cond))
	begin := func() rig.Going {
		rig.Must(d, l.Lock(d.ctx))
		return rig.Beside(func() error {
			err := cond.Wait(d.ctx)
			return errors.Join(err, l.Unlock())
		})
	}
	waits := begin()
	rig.Soon(d, func() string {
		select {
		case err := <-waits: // a link that was slow for a moment may have lost a signal, so its client wakes its waiters
			rig.Must(d, err)
			waits = begin()
		default:
		}
		if n := len(waitersOn(d.T, cond)); n != before+1 {
			return fmt.Sprint(n, " wait on the condition")
		}
		return ""
	})
	return waits
}

func waitersOn(t *testing.T, c *relock.Cond) []relock.Waiter {
	t.Helper()
	all, err := c.Waiters(t.Context())
	rig.Must(t, err)
	return all
}

// signal wakes one or all, under the lock.
func (d *deployed) signal(c *relock.Client, wake func(*relock.Cond, context.Context) error) {
	d.Helper()
	l := c.NewLock(d.name)
	rig.Must(d, l.Lock(d.ctx))
	rig.Must(d, wake(l.NewCond("c"), d.ctx))
	rig.Must(d, l.Unlock())
}

func (d *deployed) signalled() {
	first, second, third := d.sleeps(d.b), d.sleeps(d.a), d.sleeps(d.b)
	d.signal(d.a, (*relock.Cond).Signal)
	d.soonHolds(first)
	select {
	case err := <-second:
		d.Fatalf("one signal has woken two: %v", err)
	case err := <-third:
		d.Fatalf("one signal has woken two: %v", err)
	default:
	}
	d.signal(d.b, (*relock.Cond).Broadcast)
	d.soonHolds(second)
	d.soonHolds(third)
}

// deadOnCondition signals a waiter that has gone without a word: the next has the signal.
func (d *deployed) deadOnCondition() {
	const ttl = time.Second
	dead := rig.Open(d, d.rdb(), d.opts...)
	gone := d.sleeps(dead, relock.TTL(ttl))
	next := d.sleeps(d.b, relock.TTL(ttl))
	rig.Must(d, dead.Close())
	// ErrClosed alone: it had got the lock back just before it was lost.
	if err := <-gone; !errors.Is(err, relock.ErrLost) && !errors.Is(err, relock.ErrClosed) {
		d.Errorf("Wait of a closed client = %v", err)
	}
	d.signal(d.a, (*relock.Cond).Signal)
	d.soonHolds(next)
}

func (d *deployed) permits() {
	one := func(c *relock.Client, opts ...relock.LockOption) *relock.Lock {
		return c.NewSemaphore(d.name, 3, opts...)
	}
	first, second := rig.MustAcquire(d, one(d.a)), rig.MustAcquire(d, one(d.b, relock.Weight(2)))
	heavy := one(d.b, relock.Weight(3))
	waits := rig.Beside(func() error { return heavy.Lock(d.ctx) })
	rig.Queued(d, heavy, 1)
	rig.Must(d, first.Release())
	rig.Must(d, second.Release())
	d.soonHolds(waits)
	if ok, err := one(d.a).TryLock(d.ctx, 0); ok || err != nil {
		d.Errorf("TryLock with no permit left = %v, %v", ok, err)
	}
	rig.Must(d, heavy.Unlock())
}

// deadPermits has a holder of permits go without a word.
func (d *deployed) deadPermits() {
	const ttl = 500 * time.Millisecond
	dead := rig.Open(d, d.rdb(), d.opts...)
	rig.MustAcquire(d, dead.NewSemaphore(d.name, 2, relock.TTL(ttl)))
	other := rig.MustAcquire(d, d.a.NewSemaphore(d.name, 2))
	rig.Must(d, dead.Close())
	next := d.b.NewSemaphore(d.name, 2, relock.TTL(ttl))
	d.soonHolds(rig.Beside(func() error { return next.Lock(d.ctx) }))
	rig.Must(d, next.Unlock())
	rig.Must(d, other.Release())
}

func (d *deployed) handOver() {
	h := rig.MustAcquire(d, d.a.NewLock(d.name))
	waiter := d.b.NewLock(d.name)
	waits := rig.Beside(func() error { return waiter.Lock(d.ctx) })
	rig.Queued(d, waiter, 1)
	ticket, err := h.Detach(d.ctx, time.Minute)
	rig.Must(d, err)
	resumed, err := d.b.Resume(d.ctx, ticket)
	rig.Must(d, err)
	if resumed.Token() != h.Token() {
		d.Errorf("resumed under token %d, detached under %d", resumed.Token(), h.Token())
	}
	if _, err := d.a.Resume(d.ctx, ticket); err == nil {
		d.Error("a ticket was resumed twice")
	}
	rig.Must(d, resumed.Release())
	d.soonHolds(waits)
	rig.WantLater(d, resumed.Token(), waiter.Token())
	rig.Must(d, waiter.Unlock())
}

// migrateConditions moves the slot of a lock on whose condition two wait, with its keys
// apart for more than a lease. They may wake up by that; they do not wait for ever.
func migrateConditions(t *testing.T, c *redistest.Cluster, first string, opts ...relock.Option) {
	const ttl = slotLease
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	name := "awaited, " + first
	keys := key.For("relock", name)
	a, b := rig.Open(t, c.Client(t), opts...), rig.Open(t, c.Client(t), opts...)
	d := &deployed{T: t, ctx: ctx, a: a, b: b, name: name}
	waits := []rig.Going{d.sleeps(a, relock.TTL(ttl)), d.sleeps(b, relock.TTL(ttl))}
	m := c.Migrate(c.Slot(keys.Hash))
	m.Begin()
	m.MoveKey(map[string]string{"hash": keys.Hash, "queue": keys.Queue}[first])
	apart := time.NewTimer(ttl * 3 / 2)
	<-apart.C
	m.End()
	for _, one := range waits {
		d.signal(b, (*relock.Cond).Signal)
		d.soonHolds(one)
	}
}

// migratePermits does the same with a semaphore that is used and waited for, and a ticket.
func migratePermits(t *testing.T, c *redistest.Cluster, first string) {
	const ttl = slotLease
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	name := "permits, " + first
	keys := key.For("relock", name)
	a, b := rig.Open(t, c.Client(t)), rig.Open(t, c.Client(t))
	one := func(c *relock.Client) *relock.Lock { return c.NewSemaphore(name, 2, relock.TTL(ttl)) }
	renewed, detached := rig.MustAcquire(t, one(a)), rig.MustAcquire(t, one(a))
	ticket, err := detached.Detach(ctx, time.Minute)
	rig.Must(t, err)
	next := one(b)
	waits := rig.Beside(func() error { return next.Lock(ctx) })
	rig.Queued(t, next, 1)
	m := c.Migrate(c.Slot(keys.Hash))
	m.Begin()
	m.MoveKey(map[string]string{"hash": keys.Hash, "queue": keys.Queue}[first])
	apart := time.NewTimer(ttl / 2)
	<-apart.C
	m.End()
	resumed, err := b.Resume(ctx, ticket)
	rig.Must(t, err)
	select {
	case err := <-waits:
		t.Fatalf("a third has a permit of two: %v", err)
	default:
	}
	rig.Must(t, resumed.Release())
	rig.Must(t, <-waits)
	rig.Must(t, renewed.Release())
	rig.Must(t, next.Unlock())
}
