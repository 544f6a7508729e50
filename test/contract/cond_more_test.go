package contract_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// Holds that Redis was never told of are given up with the others, and come back.
func TestHoldsOfLocalReentryComeBackAfterAWait(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		a, other := x.Actor(), x.Lock("l")
		l, ctx := a.NewLock("l", relock.LocalReentry()), x.By("me")
		var holds []*relock.Hold
		for range 3 {
			h, err := l.Acquire(ctx)
			rig.Must(t, err)
			holds = append(holds, h)
		}
		x.Holders(l, "me", 1)
		before := holds[0].Token()
		s := x.Sleeps(ctx, l.NewCond("c"), 0)
		for _, h := range holds {
			rig.WantIs(t, h.Err(), relock.ErrNotHeld)
		}
		rig.Must(t, other.Lock(t.Context()))
		rig.Must(t, other.NewCond("c").Signal(t.Context()))
		virtual.Sleep(time.Minute)
		s.Waits()
		rig.Must(t, other.Unlock())
		s.Woken()
		for _, h := range holds {
			rig.Must(t, h.Err())
			rig.WantLater(t, before, h.Token())
		}
		for range 2 {
			rig.Must(t, l.Unlock())
			x.Refuses(other)
		}
		rig.Must(t, l.Unlock())
		rig.WantBare(t, x.Redis, "l")
	})
}

// A wait gives up the lock, and the name rests from its grant on, as after an unlock: who is
// signalled holds after that, and begins no rest of its own.
func TestANameRestsWhileItsOwnerWaitsOnACondition(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l, other := x.Lock("l", relock.AtLeast(10*time.Second)), x.Lock("l")
		rig.Must(t, l.Lock(t.Context()))
		s := x.Sleeps(t.Context(), l.NewCond("c"), 0)
		x.Refuses(other)
		waits := x.Begin(other)
		x.Until(9 * time.Second)
		waits.Waits()
		h := waits.Returns()
		if now := x.Now(); now < 10*time.Second || now > 11*time.Second {
			t.Errorf("another held after %v, and the name rested for 10 s", now)
		}
		rig.Must(t, other.NewCond("c").Signal(t.Context()))
		rig.End(t, h)
		s.Woken()
		if now := x.Now(); now > 12*time.Second {
			t.Errorf("who was signalled held after %v", now)
		}
		rig.Must(t, l.Unlock())
		rig.End(t, x.Take(other)) // at once
		rig.WantBare(t, x.Redis, "l")
	})
}

// The time of a wait ends while the name rests: that is waited for.
func TestAWaitWhoseTimeEndsWhileTheNameRestsHoldsAfterThat(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("l", relock.AtLeast(10*time.Second))
		h := rig.MustAcquire(t, l)
		s := x.Sleeps(t.Context(), l.NewCond("c"), time.Second)
		x.Until(9 * time.Second)
		s.Waits()
		s.Ended(nil)
		if now := x.Now(); now < 10*time.Second || now > 11*time.Second {
			t.Errorf("it held again after %v, and the name rested for 10 s", now)
		}
		rig.Must(t, h.Err())
		rig.End(t, h)
	})
}

// A client that is closed before it hears that who waits there holds says so with its
// release, and so the signal is the next one's; of one that unlocks it was had.
func TestReleaseOfWhatNobodyHeardOfPassesItsSignalOn(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := parties(x, 3)
		first, second := p[0].sleeps(x), p[1].sleeps(x)
		p[2].signals(x)
		rig.Must(t, p[2].l.Unlock())
		first.Woken()
		rig.Must(t, p[0].l.Unlock())
		second.Waits() // the first has had it
		onCondition(t, p[1].c, 1)
		third := p[0].sleeps(x)
		p[2].signals(x)
		p[1].Link.HoleSubscribers()
		rig.Must(t, p[2].l.Unlock())
		synctest.Wait()
		third.Waits() // the second holds, and does not know
		before := x.Now()
		rig.Must(t, p[1].Close())
		second.Ended(relock.ErrLost)
		third.Woken()
		if took := x.Now() - before; took > time.Second {
			t.Errorf("the third was woken %v later", took)
		}
		rig.Must(t, p[0].l.Unlock())
	})
}

// A waiter that is paused for longer than its entry lasts is passed over by a signal. When
// it goes on it wakes up, with all its holds: nobody knows any more what it has missed.
func TestWaiterThatWasPausedWakesUpBesideWhoHasItsSignal(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := parties(x, 3)
		ctx := x.By("me")
		rig.Must(t, p[0].l.Lock(ctx))
		rig.Must(t, p[0].l.Lock(ctx))
		first := x.Sleeps(ctx, p[0].c, 0)
		second := p[1].sleeps(x)
		goOn := p[0].Link.Hole()
		virtual.Sleep(31 * time.Second)
		p[2].signals(x)
		rig.Must(t, p[2].l.Unlock())
		second.Woken()
		goOn()
		virtual.Sleep(time.Second)
		first.Waits() // the second holds
		rig.Must(t, p[1].l.Unlock())
		first.Woken()
		x.Holders(p[0].l, "me", 2)
		rig.Must(t, p[0].l.Unlock())
		rig.Must(t, p[0].l.Unlock())
		rig.WantBare(t, x.Redis, "l")
	})
}

// A session that was signalled, and of which its client knows nothing any more, has the lock:
// the client finds it in the way as it asks, and its journal has no release of it.
// Fails when it is ended as by an unlock: its signal goes with it, and who waits is not woken.
func TestASignalledSessionThatNobodyKnowsPassesItsSignalOn(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p, a := parties(x, 2), x.Actor()
		r := rig.Raw{T: t, Redis: x.Redis, ID: rig.ID(a.Client)}
		nonce := rig.NonceOf('g')
		r.Ask(nonce, "~g", time.Minute, 1, 0)
		token := x.Redis.HGet(t.Context(), key.For("relock", "l").Hash, "token").Val()
		r.Run("await", r.Identity(nonce, "~g"), 2, 1, 60_000, "c", 600_000, key.Inbox("relock", ""), token)
		second := p[0].sleeps(x)
		p[1].signals(x)
		a.Warm()
		rig.Must(t, p[1].l.Unlock())
		second.Waits()                 // the session has the signal, and the lock
		x.Until(x.Now() + time.Second) // its ticket is older than that of who asks now
		asks := x.Begin(a.NewLock("l"))
		second.Woken()
		rig.Must(t, p[0].l.Unlock())
		rig.End(t, asks.Holds())
	})
}

// With ShardedPubSub a lock's channel is subscribed while somebody waits on its conditions, and 5 s longer.
func TestAShardedWaitOnAConditionListensUntilItsEnd(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		shard := x.Server.Shard()
		l := x.Actor(relock.ShardedPubSub()).NewLock("l")
		rig.Must(t, l.Lock(t.Context()))
		s := x.Sleeps(t.Context(), l.NewCond("c"), 0)
		x.Until(x.Now() + time.Minute)
		if n := shard.Channels(); n != 1 {
			t.Errorf("%d channels during the wait, want 1", n)
		}
		signalsAndUnlocks(t, x.Lock("l"))
		s.Woken()
		rig.Must(t, l.Unlock())
		x.Until(x.Now() + 5*time.Second + time.Millisecond)
		if n := shard.Channels(); n != 0 {
			t.Errorf("%d channels 5 s after the wait", n)
		}
	})
}

// The handle has a lost hold of another call, which is not unlocked yet.
// Fails when that comes before the hold from which the context descends.
func TestASignalIsOfTheHoldOfItsContext(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		l := c.NewLock("l")
		lost := rig.MustAcquire(t, l)
		_, err := x.Eye.NewLock("l").ForceUnlock(t.Context())
		rig.Must(t, err)
		<-lost.Lost()
		h := rig.MustAcquire(t, c.NewLock("l"))
		rig.Must(t, l.NewCond("c").Signal(h.Context(t.Context())))
		rig.WantIs(t, l.NewCond("c").Signal(t.Context()), relock.ErrLost)
		rig.WantIs(t, lost.Release(), relock.ErrLost)
		rig.End(t, h)
	})
}
