package deploy_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// The embedded server has no replicas: to it, WAIT is answered 0 at once. The
// others of these schedules have a real primary and a real replica.

// TestReplicasTooFewUndoTheGrant fails when a grant that too few replicas have
// is kept.
func TestReplicasTooFewUndoTheGrant(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		l := a.NewLock("l", relock.Replicas(1, time.Second))
		for _, lock := range []func() error{
			func() error { return l.Lock(t.Context()) },
			func() error { _, err := l.TryLock(t.Context(), 0); return err },
			func() error { _, err := l.TryLock(t.Context(), time.Minute); return err },
			func() error { return l.Lock(relock.WithOwner(t.Context(), "o")) },
			func() error {
				return a.NewRWLock("rw", relock.Replicas(1, time.Second)).RLock(t.Context())
			},
		} {
			err := lock()
			if !errors.Is(err, relock.ErrReplicas) || !strings.Contains(err.Error(), "0 of 1 acknowledged") {
				t.Fatalf("error %v, want ErrReplicas that says how many answered", err)
			}
			s.Until(s.Now() + 17*time.Millisecond)
			s.Free(l)
		}
		rig.End(t, s.Take(b.NewLock("l")))
	})
}

// TestReplicasTooFewLeaveTheOuterHoldAsItWas fails when a re-entry that is not
// acknowledged counts, or extends the trust.
func TestReplicasTooFewLeaveTheOuterHoldAsItWas(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a := s.Actor()
		ctx := relock.WithOwner(t.Context(), "o")
		outer, err := a.NewLock("l").Acquire(ctx)
		rig.Must(t, err)
		before := outer.TrustedUntil()
		s.Until(s.Now() + time.Second)
		if _, err := a.NewLock("l", relock.Replicas(1, time.Second)).Acquire(ctx); !errors.Is(err, relock.ErrReplicas) {
			t.Fatalf("re-entry: %v, want ErrReplicas", err)
		}
		if got := outer.TrustedUntil(); got.Before(before) {
			t.Errorf("trusted until %v, was %v", got, before)
		}
		s.Until(s.Now() + time.Minute)
		if err := outer.Err(); err != nil {
			t.Errorf("the outer hold asks for no replicas, and is %v", err)
		}
		if n := s.HoldsOf(a.NewLock("l")); n != 1 {
			t.Errorf("redis counts %d holds, want 1", n)
		}
		rig.End(t, outer)
	})
}

// TestReplicasThatAreSilentRefuseTheGrant fails when WAIT goes out on another
// connection than the script: there it counts a replica that lacks the grant.
func TestReplicasThatAreSilentRefuseTheGrant(t *testing.T) {
	p := newPair(t)
	c := p.client(p.primary)
	l, patient := c.NewLock("l", relock.Replicas(1, 100*time.Millisecond)), c.NewLock("l", relock.Replicas(1, 2*time.Second))
	lockAndUnlock(t, patient)
	p.follows() // it has all that any connection wrote so far
	p.replica.Pause()
	if err := l.Lock(t.Context()); !errors.Is(err, relock.ErrReplicas) {
		t.Fatalf("the replica is stopped: %v, want ErrReplicas", err)
	}
	p.eventually("the lock is free", func() bool { return p.free(l) })
	p.replica.Resume()
	p.follows()
	lockAndUnlock(t, patient)
}

func lockAndUnlock(t *testing.T, l *relock.Lock) {
	t.Helper()
	rig.Must(t, l.Lock(t.Context()))
	rig.Must(t, l.Unlock())
}

// TestReplicasConfirmAHandOff fails when a grant by message is a hold before
// replicas have it.
func TestReplicasConfirmAHandOff(t *testing.T) {
	p := newPair(t)
	holder := p.client(p.primary).NewLock("l")
	c := p.client(p.primary)
	for _, silent := range []bool{false, true} {
		waiter := c.NewLock("l", relock.Replicas(1, 2*time.Second))
		if silent {
			waiter = c.NewLock("l", relock.Replicas(1, 100*time.Millisecond))
		}
		rig.Must(t, holder.Lock(t.Context()))
		got := make(chan error, 1)
		go func() { got <- waiter.Lock(t.Context()) }()
		p.eventually("it waits", func() bool {
			info, err := waiter.Info(t.Context())
			return err == nil && info.Waiters == 1
		})
		if silent {
			p.replica.Pause()
		}
		rig.Must(t, holder.Unlock())
		switch err := <-got; {
		case !silent && err != nil:
			t.Fatalf("handed over: %v", err)
		case !silent:
			rig.Must(t, waiter.Unlock())
		case !errors.Is(err, relock.ErrReplicas):
			t.Fatalf("handed over while the replica is stopped: %v, want ErrReplicas", err)
		}
		p.eventually("the lock is free", func() bool { return p.free(waiter) })
	}
}

// TestReplicasConfirmAWait fails when who waits on a condition holds before replicas have it.
func TestReplicasConfirmAWait(t *testing.T) {
	p := newPair(t)
	signaller, c := p.client(p.primary).NewLock("l"), p.client(p.primary)
	for _, silent := range []bool{false, true} {
		l := c.NewLock("l", relock.TTL(3*time.Second), relock.Replicas(1, 300*time.Millisecond))
		cond := l.NewCond("c")
		h := rig.MustAcquire(t, l)
		got := rig.Sleeps(t, t.Context(), cond, 0)
		p.eventually("it waits", func() bool { all, err := cond.Waiters(t.Context()); return err == nil && len(all) == 1 })
		rig.Must(t, signaller.Lock(t.Context()))
		if silent {
			p.replica.Pause()
		}
		rig.Must(t, signaller.NewCond("c").Signal(t.Context()))
		rig.Must(t, signaller.Unlock())
		if silent {
			got.Ended(relock.ErrLost)
			rig.WantIs(t, h.Release(), relock.ErrLost)
			continue
		}
		got.Woken()
		rig.Must(t, h.Err())
		rig.Must(t, h.Release())
	}
}

// TestReplicasThatMissRenewalsEndTheHold fails when a renewal extends trust that
// no replica has acknowledged.
func TestReplicasThatMissRenewalsEndTheHold(t *testing.T) {
	// A renewal is waited for a third of the lease, so that Redis has half a second to say
	// that no replica has it: else the hold would end without that reason.
	const ttl, replicas = 2400 * time.Millisecond, 300 * time.Millisecond
	p := newPair(t)
	h := p.acquire(p.client(p.primary).NewLock("l", relock.TTL(ttl), relock.Replicas(1, replicas)))
	awaitRenewal(t, p, h) // acknowledged ones extend it
	p.replica.Pause()
	stopped := time.Now()
	select {
	case <-h.Lost():
	case <-time.After(20 * time.Second):
		t.Fatalf("still trusted 20 s after the replica was stopped, until %v", h.TrustedUntil())
	}
	if after := time.Since(stopped); after > 2*ttl {
		t.Errorf("lost %v after the replica was stopped, want within a lease of %v", after, ttl)
	}
	if err := h.Err(); !errors.Is(err, relock.ErrLost) || !errors.Is(err, relock.ErrReplicas) {
		t.Errorf("error %v, want ErrLost and ErrReplicas", err)
	}
}

// awaitRenewal returns when the hold's trust has moved.
func awaitRenewal(t *testing.T, p *pair, h *relock.Hold) {
	t.Helper()
	before := h.TrustedUntil()
	p.eventually("it is renewed", func() bool { return h.TrustedUntil().After(before) })
}

// TestReplicasOutliveAPartition fails when any trust rests on what the promoted
// replica does not have. Without Replicas, two do hold.
func TestReplicasOutliveAPartition(t *testing.T) {
	for range 3 {
		if partitioned(t, relock.Replicas(1, 200*time.Millisecond)) {
			t.Fatal("two holders: the one on the old primary trusted its hold when the new primary granted another")
		}
	}
	if !partitioned(t) {
		t.Error("without Replicas one holder only, want two: the test does not see what it is there for")
	}
}

// partitioned cuts a primary off from its replica, promotes that, and says
// whether a holder on the old primary trusts its hold when the new one grants
// the lock again.
func partitioned(t *testing.T, more ...relock.LockOption) (overlap bool) {
	t.Helper()
	p := newPair(t)
	opts := append([]relock.LockOption{relock.TTL(800 * time.Millisecond)}, more...)
	old, next := p.client(p.primary), p.client(p.replica).NewLock("l", relock.TTL(800*time.Millisecond))
	h := p.acquire(old.NewLock("l", opts...))
	awaitRenewal(t, p, h)
	p.wire.Cut()
	p.promote()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	rig.Must(t, next.Lock(ctx))
	overlap = h.Err() == nil
	if len(more) > 0 {
		if err := old.NewLock("fresh", opts...).Lock(ctx); !errors.Is(err, relock.ErrReplicas) {
			t.Errorf("the old primary granted a lock: %v, want ErrReplicas", err)
		}
	}
	_ = h.Release()
	rig.Must(t, next.Unlock())
	return overlap
}

// TestReplicasAreNotNeededToUnlock fails when a nested unlock waits for
// replicas, or when its answer extends the trust without them.
func TestReplicasAreNotNeededToUnlock(t *testing.T) {
	p := newPair(t)
	l := p.client(p.primary).NewLock("l", relock.TTL(2*time.Second), relock.Replicas(1, 500*time.Millisecond))
	ctx := relock.WithOwner(t.Context(), "o")
	outer, err := l.Acquire(ctx)
	rig.Must(t, err)
	inner, err := l.Acquire(ctx)
	rig.Must(t, err)
	awaitRenewal(t, p, outer)
	p.replica.Pause()
	p.eventually("redis has a renewal that no replica has", func() bool {
		info, err := l.Info(t.Context())
		return err == nil && info.Holders[0].TTL > time.Until(outer.TrustedUntil())+200*time.Millisecond
	})
	before, began := outer.TrustedUntil(), time.Now()
	rig.End(t, inner)
	if took := time.Since(began); took >= 500*time.Millisecond {
		t.Errorf("the nested unlock took %v: it has waited for a replica", took)
	}
	if after := outer.TrustedUntil(); !after.Equal(before) {
		t.Errorf("trusted until %v after a nested unlock, was %v", after, before)
	}
	rig.End(t, outer)
	if !p.free(l) {
		t.Error("the lock is held after its last unlock")
	}
}

// TestReplicasOfOneLockDelayNoOther fails when renewals that wait for replicas
// share a pipeline with those that do not.
func TestReplicasOfOneLockDelayNoOther(t *testing.T) {
	p := newPair(t)
	c := p.client(p.primary)
	slow := p.acquire(c.NewLock("slow", relock.TTL(4*time.Second), relock.Replicas(1, time.Second)))
	quick, err := c.NewLock("quick", relock.TTL(1500*time.Millisecond)).Acquire(t.Context())
	rig.Must(t, err)
	p.replica.Pause()
	select {
	case <-quick.Lost():
		t.Fatalf("the lock without Replicas: %v", quick.Err())
	case <-slow.Lost():
	case <-time.After(20 * time.Second):
		t.Fatal("the lock with Replicas is not lost")
	}
	if err := quick.Err(); err != nil {
		t.Errorf("the lock without Replicas: %v", err)
	}
}

// TestReplicasWithoutThePermission fails when a grant whose WAIT was refused is
// left in Redis: the permission was taken away after the first call had asked.
func TestReplicasWithoutThePermission(t *testing.T) {
	srv := redistest.Real(t)
	admin := srv.Client(t)
	rig.Permit(t, admin, "ACL SETUSER app on >secret ~* &* +@all")
	c := rig.Open(t, srv.Client(t, func(o *redis.Options) { o.Username, o.Password = "app", "secret" }))
	l := c.NewLock("l", relock.Replicas(1, 100*time.Millisecond))
	if err := l.Lock(t.Context()); !errors.Is(err, relock.ErrReplicas) {
		t.Fatalf("error %v without a replica", err)
	}
	p := &pair{t: t}
	p.eventually("what was granted is undone", func() bool { return p.free(l) }) // the next is granted at once
	rig.Permit(t, admin, "ACL SETUSER app -wait")
	err := l.Lock(t.Context())
	if err == nil || !strings.Contains(err.Error(), "NOPERM") || !strings.Contains(err.Error(), "wait") {
		t.Fatalf("error %v, want one that says NOPERM and names wait", err)
	}
	p.eventually("the lock is free", func() bool { return p.free(l) })
}

// TestReplicasTooFewEndATryAtOnce fails when a TryLock goes on asking until its wait ends.
func TestReplicasTooFewEndATryAtOnce(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		l := s.Actor().NewLock("l", relock.Replicas(1, time.Second))
		began := s.Now()
		_, err := l.TryLock(t.Context(), time.Minute)
		if took := s.Now() - began; !errors.Is(err, relock.ErrReplicas) || took > time.Second {
			t.Errorf("%v after %v, want ErrReplicas at once", err, took)
		}
	})
}
