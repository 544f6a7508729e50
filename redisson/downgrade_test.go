package redisson_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/script"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/redisson"
	"github.com/relock-go/relock/redisson/lua"
)

// wantHolds fails unless the handle has so many live holds for writing and for reading.
func wantHolds(t *testing.T, rw *redisson.RWLock, writes, reads int) {
	t.Helper()
	if w, r := rw.WLocker().HoldCount(), rw.RLocker().HoldCount(); w != writes || r != reads {
		t.Errorf("%d write holds and %d read holds, want %d and %d", w, r, writes, reads)
	}
}

// TestADowngradeOfAWriteHoldThatIsGoneLeavesNoReader: the lock was free, so the read was had.
// The write hold is yet to be unlocked, by one Unlock.
// Fails when the read hold is left, or the Unlock would end what another call has got.
func TestADowngradeOfAWriteHoldThatIsGoneLeavesNoReader(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := client(t, x)
		for _, me := range []context.Context{x.By("me"), t.Context()} {
			rw := c.NewRWLock("a")
			rig.Must(t, rw.Lock(me))
			if ok, err := client(t, x).NewRWLock("a").WLocker().ForceUnlock(t.Context()); !ok || err != nil {
				t.Fatalf("ForceUnlock = %v, %v", ok, err)
			}
			rig.WantIs(t, rw.Downgrade(me), relock.ErrLost)
			wantHolds(t, rw, 0, 0)
			bare(t, x)
			rig.WantIs(t, rw.RUnlock(), relock.ErrNotHeld)
			rig.WantIs(t, rw.Unlock(), relock.ErrLost)
			rig.WantIs(t, rw.Unlock(), relock.ErrNotHeld)
			rig.Must(t, rw.Lock(me))
			rig.Must(t, rw.Downgrade(me))
			rig.Must(t, rw.RUnlock())
			bare(t, x)
		}
	})
}

// TestTheUnlockAfterALostDowngradeEndsNoLaterHold of the same owner, which has the same
// field in Redis.
// Fails when Redis is told a second time of the hold that has ended.
func TestTheUnlockAfterALostDowngradeEndsNoLaterHold(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, me := client(t, x), x.By("me")
		rw := c.NewRWLock("a")
		rig.Must(t, rw.Lock(me))
		x.Redis.Del(t.Context(), "a")
		reads, err := rw.RLocker().Acquire(me) // keeps the owner's field
		rig.Must(t, err)
		rig.WantIs(t, rw.Downgrade(me), relock.ErrLost)
		x.Redis.Del(t.Context(), "a")
		h, err := c.NewRWLock("a").WLocker().Acquire(me)
		rig.Must(t, err)
		rig.WantIs(t, rw.Unlock(), relock.ErrLost)
		virtual.Sleep(time.Minute)
		rig.Must(t, h.Err())
		rig.Must(t, h.Release())
		rig.WantIs(t, reads.Release(), relock.ErrLost)
	})
}

// TestADowngradeDoesNotWaitForWhoHasTakenTheLock: that it is taken says that the write hold
// is gone.
// Fails when Downgrade waits as RLock does.
func TestADowngradeDoesNotWaitForWhoHasTakenTheLock(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rw, other := client(t, x).NewRWLock("a"), client(t, x).NewRWLock("a")
		rig.Must(t, rw.Lock(t.Context()))
		x.Redis.Del(t.Context(), "a")
		rig.Must(t, other.Lock(t.Context()))
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		rig.WantIs(t, rw.Downgrade(ctx), relock.ErrLost)
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %v", took)
		}
		wantHolds(t, rw, 0, 0)
		rig.WantIs(t, rw.Unlock(), relock.ErrLost)
		virtual.Sleep(time.Minute)
		rig.Must(t, other.Unlock())
		bare(t, x)
	})
}

// The read hold is one of the handle, and the Acquire has none any more.
// Fails when such a hold cannot be downgraded, or is released as well.
func TestADowngradeTakesAHoldOfAcquireOrDo(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rw := client(t, x).NewRWLock("a")
		h := acquired(t.Context(), t, rw.WLocker())
		rig.Must(t, rw.Downgrade(t.Context()))
		err := h.Release()
		rig.WantIs(t, err, relock.ErrNotHeld)
		rig.WantNot(t, err, relock.ErrLost)
		wantReads(t, x, rw)
		err = rw.WLocker().Do(t.Context(), func(context.Context) error { return rw.Downgrade(t.Context()) })
		rig.WantIs(t, err, relock.ErrNotHeld)
		rig.WantNot(t, err, relock.ErrLost)
		wantReads(t, x, rw)
	})
}

// Another owner's read hold was lost, and is not unlocked yet.
// Fails when the writer reads by the same handle: an RUnlock could end either hold.
func TestADowngradeIsRefusedBesideReadHoldsOfAnotherOwner(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rw := client(t, x).NewRWLock("a")
		rig.Must(t, rw.RLock(x.By("reader")))
		if ok, err := client(t, x).NewRWLock("a").RLocker().ForceUnlock(t.Context()); !ok || err != nil {
			t.Fatalf("ForceUnlock = %v, %v", ok, err)
		}
		rig.Must(t, rw.Lock(x.By("writer")))
		virtual.Sleep(time.Minute) // the reader's loss is known, and its own key in Redis has ended
		rig.WantIs(t, rw.Downgrade(t.Context()), relock.ErrOwnerMismatch)
		wantHolds(t, rw, 1, 0)
		rig.WantIs(t, rw.RUnlock(), relock.ErrLost)
		rig.Must(t, rw.Downgrade(t.Context()))
		wantReads(t, x, rw)
	})
}

// TestADowngradeWhoseHoldIsUnlockedMeanwhileLeavesNoReader: another goroutine has ended it.
// Fails when the read hold is left.
func TestADowngradeWhoseHoldIsUnlockedMeanwhileLeavesNoReader(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rw, link := written(t, x)
		link.Latency(20 * time.Millisecond)
		down := rig.Beside(func() error { return rw.Downgrade(t.Context()) })
		virtual.Sleep(5 * time.Millisecond)
		rig.Must(t, rw.Unlock())
		rig.WantIs(t, <-down, relock.ErrNotHeld)
		wantHolds(t, rw, 0, 0)
		bare(t, x)
	})
}

// TestADowngradeThatRedisDoesNotAnswerReads, and others join when Redis has been told.
// Fails when the read hold is dropped, or nobody goes on telling Redis.
func TestADowngradeThatRedisDoesNotAnswerReads(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rw, link := written(t, x)
		sha := script.MustLoad(lua.FS, "write_release").SHA
		var heals atomic.Bool
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if cmd.Is("evalsha") && cmd.Args[1] == sha && !heals.Load() {
				return redistest.Lose
			}
			return redistest.Pass
		})
		rig.WantIs(t, rw.Downgrade(t.Context()), relock.ErrUnconfirmed)
		wantHolds(t, rw, 0, 1)
		other := client(t, x).NewRWLock("a")
		if ok, err := other.TryRLock(t.Context(), 0); ok || err != nil {
			t.Errorf("a reader before Redis was told: %v, %v", ok, err)
		}
		heals.Store(true)
		rig.Must(t, other.RLock(t.Context()))
		wantHolds(t, rw, 0, 1)
		rig.Must(t, rw.RUnlock())
		rig.Must(t, other.RUnlock())
		virtual.Sleep(10 * time.Second)
		bare(t, x)
	})
}

// TestWhatAnEarlierDowngradeLeftEndsNoLaterOne of a hold without an owner's name: the two
// have one field in Redis.
// Fails when the later one has a session that the earlier does not know of.
func TestWhatAnEarlierDowngradeLeftEndsNoLaterOne(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rw, link := written(t, x)
		fate(link, "read_acquire", 1, redistest.SwallowReply)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		rig.WantIs(t, rw.Downgrade(ctx), context.DeadlineExceeded)
		cancel()
		rig.Must(t, rw.Downgrade(t.Context()))
		virtual.Sleep(5 * time.Second)
		wantReads(t, x, rw)
	})
}

// TestOfTwoDowngradesOfOneHoldOneReads, and the other ends only what it has had itself.
// Fails when the two have a session each.
func TestOfTwoDowngradesOfOneHoldOneReads(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rw, link := written(t, x)
		link.Latency(20 * time.Millisecond)
		down := func() error { return rw.Downgrade(t.Context()) }
		one, two := rig.Beside(down), rig.Beside(down)
		errs := []error{<-one, <-two}
		if errs[0] != nil {
			errs[0], errs[1] = errs[1], errs[0]
		}
		rig.Must(t, errs[0])
		rig.WantIs(t, errs[1], relock.ErrNotHeld)
		virtual.Sleep(time.Second)
		wantReads(t, x, rw)
	})
}

// TestADowngradeWhoseLeaseEndsLosesNoOtherHold of the same owner, which has a longer one.
// Fails when all holds of the owner are taken for lost with it.
func TestADowngradeWhoseLeaseEndsLosesNoOtherHold(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		loadAll(t, x)
		c, link := linked(t, x)
		me := x.By("me")
		long := c.NewRWLock("a")
		short := c.NewRWLock("a", redisson.TTL(time.Second), redisson.NoWatchdog())
		rig.Must(t, long.Lock(me))
		rig.Must(t, short.Lock(me))
		virtual.Sleep(900 * time.Millisecond)
		link.Latency(100 * time.Millisecond)
		rig.WantIs(t, short.Downgrade(me), relock.ErrLost)
		link.Latency(0)
		virtual.Sleep(time.Minute)
		wantHolds(t, long, 1, 0)
		rig.WantIs(t, short.Unlock(), relock.ErrLost)
		rig.Must(t, long.Unlock())
		bare(t, x)
	})
}

// Somebody removes the write hold, and another owner reads by the handle before the Downgrade is answered.
// Fails when the Downgrade gets a read hold that is on no handle: no RUnlock would end it.
func TestADowngradeThatAnotherReaderOvertakesIsRefused(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		loadAll(t, x)
		link := redistest.NewLink(t, x.Server.Dial)
		rdb := x.Server.Client(t, func(o *redis.Options) { o.Dialer = link.Dial })
		rw := clientOver(t, struct{ *redis.Client }{rdb}).NewRWLock("a") // each command may take another connection
		rig.Must(t, rw.Lock(t.Context()))
		acquire, release := script.MustLoad(lua.FS, "read_acquire").SHA, script.MustLoad(lua.FS, "write_release").SHA
		var asked, healed atomic.Bool
		gate := make(chan struct{})
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			switch {
			case !cmd.Is("evalsha"):
			case cmd.Args[1] == acquire && asked.CompareAndSwap(false, true):
				return redistest.Hold(gate)
			case cmd.Args[1] == release && !healed.Load():
				return redistest.Lose
			}
			return redistest.Pass
		})
		down := rig.Beside(func() error { return rw.Downgrade(t.Context()) })
		down.Pending(t, "Downgrade")
		x.Redis.Del(t.Context(), "a")
		rig.Must(t, rw.RLock(x.By("reader")))
		close(gate)
		rig.WantIs(t, <-down, relock.ErrOwnerMismatch)
		healed.Store(true)
		wantHolds(t, rw, 1, 1)
		rig.WantIs(t, rw.Unlock(), relock.ErrLost)
		rig.Must(t, rw.RUnlock())
		virtual.Sleep(time.Minute)
		bare(t, x)
	})
}

// The write hold is unlocked as the Downgrade begins, and its owner writes again.
// Fails when the owner's name then belongs to nobody, or to the owner that has ended: a nested call would wait for itself.
func TestADowngradeOfAnOwnerThatHasEndedLeavesTheNextOne(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rw, me := client(t, x).NewRWLock("a"), x.By("me")
		h := acquired(me, t, rw.WLocker())
		rig.Must(t, h.Release())
		rig.Must(t, rw.Lock(me))
		rig.WantIs(t, redisson.Downgrade(me, rw, h), relock.ErrLost)
		if ok, err := rw.TryLock(me, 0); !ok || err != nil {
			t.Fatalf("a nested call of the owner: %v, %v", ok, err)
		}
		rig.Must(t, rw.Unlock())
		rig.Must(t, rw.Unlock())
		bare(t, x)
	})
}

// written is a handle by which a client behind a link writes, for an owner without a name.
func written(t *testing.T, x *rig.Lab) (*redisson.RWLock, *redistest.Link) {
	t.Helper()
	rw, _, link := writtenBy(t, x)
	return rw, link
}

// writtenBy is written, and returns the client too.
func writtenBy(t *testing.T, x *rig.Lab) (*redisson.RWLock, *redisson.Client, *redistest.Link) {
	t.Helper()
	loadAll(t, x)
	c, link := linked(t, x)
	rw := c.NewRWLock("a")
	rig.Must(t, rw.Lock(t.Context()))
	return rw, c, link
}

// wantReads has the handle read once, and keep writers out until that ends.
func wantReads(t *testing.T, x *rig.Lab, rw *redisson.RWLock) {
	t.Helper()
	wantHolds(t, rw, 0, 1)
	if ok, err := client(t, x).NewRWLock("a").TryLock(t.Context(), 0); ok || err != nil {
		t.Errorf("a writer beside who has downgraded: %v, %v", ok, err)
	}
	rig.Must(t, rw.RUnlock())
	bare(t, x)
}
