package schedules_test

import (
	"context"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// A wait under its own hold's context is cancelled, and cannot have the lock back for three ticks of its clock.
// Fails when it asks that context under the mutex of the lock, which the context takes: then no hold of the lock's client
// is renewed any more.
func TestAWaitUnderItsHoldsContextIsCancelled(t *testing.T) {
	const ttl = 600 * time.Millisecond
	srv := redistest.Real(t)
	renewed := make(chan relock.Event, 100)
	a := rig.RealActor(t, srv, relock.Defaults(relock.TTL(ttl)))
	b := rig.RealActor(t, srv, relock.Defaults(relock.TTL(ttl)), relock.Trace(relock.Hooks{Renewed: func(ev relock.Event) { renewed <- ev }}))
	l := a.NewLock("l")
	h := rig.MustAcquire(t, l)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	waited := make(chan error, 1)
	go func() { waited <- l.NewCond("c").Wait(h.Context(ctx)) }()
	taken := rig.MustAcquire(t, b.NewLock("l")) // as soon as the wait has begun
	cancel()
	for range 4 { // each after a third of the TTL, as the wait looks
		<-renewed
	}
	rig.Must(t, taken.Release())
	select {
	case err := <-waited:
		rig.WantIs(t, err, context.Canceled)
	case <-time.After(10 * time.Second):
		t.Fatal("the wait does not end")
	}
	rig.Must(t, h.Err())
	rig.Must(t, h.Release())
}

// Fails when a wait on a condition leaves the lock to whoever asks next, and not to the first in the queue.
func TestAWaitHandsTheLockOverAtOnce(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		l := a.NewLock("l")
		held := s.Take(l)
		next := s.Begin(b.NewLock("l"))
		next.Waits()
		at := s.Now()
		wait := rig.Beside(func() error { return l.NewCond("c").Wait(held.Context(t.Context())) })
		wait.Pending(t, "the wait")
		other := next.Holds()
		if took := next.At - at; took > 100*time.Millisecond {
			t.Errorf("the next holds after %v", took)
		}
		rig.Must(t, b.NewLock("l").NewCond("c").Signal(other.Context(t.Context())))
		rig.End(t, other)
		rig.Must(t, <-wait)
		rig.End(t, held)
	})
}
