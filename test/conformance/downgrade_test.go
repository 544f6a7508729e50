package conformance_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

func TestDowngradeLetsReadersJoinAndNoWriterBetween(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		for _, ctx := range []context.Context{t.Context(), relock.WithOwner(t.Context(), "me")} {
			rw, r, w := g.clients[0].NewRWLock(g.name, g.opts...), g.thread("r"), g.thread("w")
			h, err := rw.WLocker().Acquire(ctx)
			g.ok(err)
			reads := r.begin(r.RLock)
			g.queue("r")
			writes := w.begin(w.Lock)
			g.queue("r", "w")
			began := time.Now()
			g.ok(rw.Downgrade(ctx))
			g.ok(reads.ends())
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("the reader came in %v later, by its heartbeat", took)
			}
			writes.waits()
			g.held(h.Owner()+" r1", "r r1")
			if rw.WLocker().HoldCount() != 0 || rw.RLocker().HoldCount() != 1 || h.Err() != nil {
				t.Errorf("%d write holds, %d read holds, %v", rw.WLocker().HoldCount(), rw.RLocker().HoldCount(), h.Err())
			}
			g.is(rw.Unlock(), relock.ErrNotHeld)
			g.is(rw.Downgrade(ctx), relock.ErrNotHeld)
			g.ok(rw.RUnlock())
			g.is(h.Release(), relock.ErrNotHeld)
			writes.waits()
			g.ok(r.RUnlock())
			g.ok(writes.ends())
			g.ok(w.Unlock())
			g.held()
		}
	})
}

// TestDowngradeOfSeveralWriteHolds takes one at a time; others join at the last.
func TestDowngradeOfSeveralWriteHolds(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		me, r := g.thread("me"), g.thread("r")
		for range 3 {
			g.ok(me.Lock(me.ctx))
		}
		reads := r.begin(r.RLock)
		g.queue("r")
		for range 2 {
			g.ok(me.Downgrade(me.ctx))
			g.held("me w3")
			reads.waits()
		}
		g.tries(true)(me.TryLock(me.ctx, 0)) // it still writes, and may re-enter
		g.ok(me.Unlock())
		g.ok(me.Downgrade(me.ctx))
		g.ok(reads.ends())
		g.held("me r3", "r r1")
		g.is(me.Lock(me.ctx), relock.ErrUpgrade)
		for range 3 {
			g.ok(me.RUnlock())
		}
		g.held("r r1")
		g.ok(r.RUnlock())
	})
}

// TestWriteUnlockWithReadsLeftIsADowngrade, in whatever order the holds end.
func TestWriteUnlockWithReadsLeftIsADowngrade(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		me, r := g.thread("me"), g.thread("r")
		g.ok(me.Lock(me.ctx))
		g.ok(me.RLock(me.ctx))
		g.ok(me.Lock(me.ctx))
		g.ok(me.RLock(me.ctx))
		reads := r.begin(r.RLock)
		g.queue("r")
		g.ok(me.Unlock())
		g.ok(me.RUnlock())
		reads.waits()
		g.held("me w2")
		g.ok(me.Unlock())
		g.ok(reads.ends())
		g.held("me r1", "r r1")
		g.ok(me.RUnlock())
		g.held("r r1")
		g.ok(r.RUnlock())
	})
}

// TestWriteUnlockInOneProcessDowngradesTheOwnersOther: its read hold there goes on.
func TestWriteUnlockInOneProcessDowngradesTheOwnersOther(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		me, elsewhere, r := g.thread("me"), g.thread("me"), g.thread("r")
		g.ok(me.Lock(me.ctx))
		g.ok(elsewhere.RLock(me.ctx))
		reads := r.begin(r.RLock)
		g.queue("r")
		reads.waits()
		g.held("me w2")
		began := time.Now()
		g.ok(me.Unlock())
		g.ok(reads.ends())
		if took := time.Since(began); took > 9*time.Second {
			t.Errorf("the reader waited for %v: the next renewal let it in, not the unlock", took)
		}
		g.held("me r1", "r r1")
		g.ok(elsewhere.RUnlock())
		g.ok(r.RUnlock())
		g.held()
	})
}

// TestDowngradeWhoseReplyIsLost is done once: a second statement says the same.
func TestDowngradeWhoseReplyIsLost(t *testing.T) {
	for _, verdict := range []redistest.Verdict{redistest.SwallowReply, redistest.CutReply, redistest.Lose, redistest.CutBefore} {
		inVirtualTime(t, func(t *testing.T, g *ground) {
			c, link := g.over()
			me, r := g.threadOf(c, "me"), g.thread("r")
			g.ok(me.Lock(me.ctx))
			reads := r.begin(r.RLock)
			g.queue("r")
			var lost atomic.Bool
			link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
				if rig.Runs(cmd, "downgrade") && lost.CompareAndSwap(false, true) {
					return verdict
				}
				return redistest.Pass
			})
			g.ok(me.Downgrade(me.ctx))
			if !lost.Load() {
				t.Error("no reply was lost")
			}
			g.ok(reads.ends())
			g.held("me r1", "r r1")
			g.ok(me.RUnlock())
			g.held("r r1")
			g.ok(r.RUnlock())
		})
	}
}

// TestDowngradeThatIsNotAnswered: the hold is a read hold from then on, and the
// client goes on telling Redis so.
func TestDowngradeThatIsNotAnswered(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, g *ground) {
		c, link := g.over()
		me, r := g.threadOf(c, "me"), g.thread("r")
		g.ok(me.Lock(me.ctx))
		heal := link.Cut()
		ctx, cancel := context.WithTimeout(me.ctx, 3*time.Second)
		defer cancel()
		err := me.Downgrade(ctx)
		g.is(err, relock.ErrUnconfirmed)
		g.is(err, context.DeadlineExceeded)
		if errors.Is(err, relock.ErrNotHeld) || me.RLocker().HoldCount() != 1 || me.WLocker().HoldCount() != 0 {
			t.Errorf("%v; %d read holds, %d write holds", err, me.RLocker().HoldCount(), me.WLocker().HoldCount())
		}
		g.held("me w1")
		g.tries(false)(r.TryRLock(r.ctx, 0))
		heal()
		virtual.Sleep(2 * time.Second)
		g.held("me r1")
		g.tries(true)(r.TryRLock(r.ctx, 0))
		g.ok(me.RUnlock())
		g.ok(r.RUnlock())
	})
}

func TestDowngradeAfterALoss(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, g *ground) {
		rw := g.clients[0].NewRWLock(g.name, relock.NoWatchdog())
		g.is(rw.Downgrade(t.Context()), relock.ErrNotHeld)
		g.ok(rw.Lock(t.Context()))
		virtual.Sleep(time.Minute)
		g.is(rw.Downgrade(t.Context()), relock.ErrLost)
		g.is(rw.RUnlock(), relock.ErrNotHeld) // it is still the write hold that is to be unlocked
		g.is(rw.Unlock(), relock.ErrLost)
		g.is(rw.Unlock(), relock.ErrNotHeld)

		g.ok(rw.Lock(t.Context()))
		g.virtual.FlushAll()
		g.is(rw.Downgrade(t.Context()), relock.ErrLost) // found only now, on its way
		g.is(rw.Unlock(), relock.ErrNotHeld)
		g.is(rw.RUnlock(), relock.ErrLost)
		g.held()
	})
}

// Fails when something else than the context bounds the call, such as the ReleaseTimeout of 5 s.
func TestDowngradeAsksForAsLongAsItsContextLasts(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, g *ground) {
		c, link := g.over()
		me := g.threadOf(c, "me")
		g.ok(me.Lock(me.ctx))
		heal := link.Cut()
		time.AfterFunc(8*time.Second, heal) // renewals are not due yet
		ctx, cancel := context.WithTimeout(me.ctx, time.Minute)
		defer cancel()
		g.ok(me.Downgrade(ctx))
		g.held("me r1")
		g.ok(me.RUnlock())
	})
}

func TestDowngradeWithAContextThatIsDone(t *testing.T) {
	onBothServers(t, func(t *testing.T, g *ground) {
		rw := g.clients[0].NewRWLock(g.name)
		h, err := rw.WLocker().Acquire(t.Context())
		g.ok(err)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		g.is(rw.Downgrade(ctx), context.Canceled)
		g.is(rw.Downgrade(nil), relock.ErrInvalidOption) //nolint:staticcheck // what it must survive
		g.held(h.Owner() + " w1")
		g.ok(rw.Unlock())
		g.is(g.clients[0].NewRWLock("").Downgrade(t.Context()), relock.ErrInvalidName)
	})
}

// TestDowngradeEndsByRelease of the hold as well, and Do's release finds it.
func TestDowngradeEndsByRelease(t *testing.T) {
	onBothServers(t, func(t *testing.T, g *ground) {
		rw := g.clients[0].NewRWLock(g.name)
		g.ok(rw.WLocker().Do(t.Context(), func(ctx context.Context) error {
			g.ok(rw.Downgrade(ctx))
			g.ok(ctx.Err())
			return nil
		}))
		if rw.RLocker().HoldCount() != 0 {
			t.Error("a read hold is left")
		}
		g.is(rw.RUnlock(), relock.ErrNotHeld)
		g.held()
	})
}

// TestRenewalThatArrivesAfterTheDowngradeIsNoLoss is a defect that was: a
// writer's renewal names one key, and one that came late, when its session read
// already, was answered "not held".
func TestRenewalThatArrivesAfterTheDowngradeIsNoLoss(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, g *ground) {
		c, link := g.over()
		me := g.threadOf(c, "me")
		h, err := me.WLocker().Acquire(me.ctx)
		g.ok(err)
		late := make(chan struct{})
		var held atomic.Bool
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if rig.Runs(cmd, "hold") && held.CompareAndSwap(false, true) {
				return redistest.Hold(late)
			}
			return redistest.Pass
		})
		virtual.Sleep(10*time.Second + time.Millisecond)
		if !held.Load() {
			t.Fatal("no renewal")
		}
		g.ok(me.Downgrade(me.ctx))
		close(late)
		synctest.Wait()
		g.ok(h.Err())
		g.held("me r1")
		virtual.Sleep(90 * time.Second)
		g.held("me r1")
		g.ok(me.RUnlock())
	})
}

// It was told that it writes, beside readers.
func TestWriteThatWaitedForADowngradeOfItsOwnerIsAnUpgrade(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		p, other := s.Actor(), s.Actor()
		ctx := relock.WithOwner(t.Context(), "w")
		h, err := p.NewRWLock("l").WLocker().Acquire(ctx)
		rig.Must(t, err)
		late := make(chan struct{})
		p.Fate("hold", 1, redistest.Hold(late))
		read := s.BeginAs("w", p.NewRWLock("l").RLocker())
		done := make(chan error, 1)
		go func() { done <- h.Release() }()
		synctest.Wait()
		write := s.BeginAs("w", p.NewRWLock("l").WLocker())
		close(late)
		rig.End(t, s.Take(other.NewRWLock("l").RLocker()))
		if <-write.Done; !errors.Is(write.Err, relock.ErrUpgrade) {
			t.Errorf("a write of an owner that reads: got %v, want ErrUpgrade", write.Err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		rig.End(t, read.Holds())
	})
}
