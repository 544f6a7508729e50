package redisson_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/redisson"
)

// TestAReleaseThatGetsNoTurnEndsNoNestedHold that Redis is being asked for: it is unconfirmed,
// and the nested hold is one like any other.
// Fails when a hold is forgotten before Redis can be told, and with the last one its session.
func TestAReleaseThatGetsNoTurnEndsNoNestedHold(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		loadAll(t, x)
		c, link := linked(t, x, redisson.ReleaseTimeout(10*time.Millisecond))
		l, other, me := c.NewLock("a"), client(t, x).NewLock("a"), x.By("me")
		outer, err := l.Acquire(me)
		rig.Must(t, err)
		link.Latency(100 * time.Millisecond)
		var nested *redisson.Hold
		asks := rig.Beside(func() (err error) { nested, err = l.Acquire(me); return err })
		synctest.Wait()
		rig.WantIs(t, outer.Release(), relock.ErrUnconfirmed)
		rig.Must(t, <-asks)
		link.Latency(0)
		for _, later := range []time.Duration{time.Second, time.Minute} { // a minute: and it was renewed
			virtual.Sleep(later)
			rig.Must(t, nested.Err())
			if ok, err := other.TryLock(t.Context(), 0); ok || err != nil {
				t.Fatalf("another owner beside a nested hold: %v, %v", ok, err)
			}
		}
		rig.Must(t, nested.Release())
		rig.Must(t, other.Lock(t.Context()))
		rig.Must(t, other.Unlock())
		bare(t, x)
	})
}

// Its end is told to Redis beside the Unlock, and the next Lock may come first.
// Fails when that one counts a hold that is lost and unlocked: Redis has it no more, and the
// owner was told to unlock what it had.
func TestAnOwnerLocksAnewAfterAllThatItLostIsUnlocked(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l, other, me := client(t, x).NewLock("a"), client(t, x).NewLock("a"), x.By("me")
		for range 50 { // who comes first is chance
			rig.Must(t, l.Lock(me))
			if ok, err := other.ForceUnlock(t.Context()); !ok || err != nil {
				t.Fatalf("ForceUnlock = %v, %v", ok, err)
			}
			rig.WantIs(t, l.Lock(me), relock.ErrLost) // which finds the loss
			rig.WantIs(t, l.Unlock(), relock.ErrLost)
			rig.Must(t, l.Lock(me))
			rig.Must(t, l.Unlock())
			synctest.Wait()
		}
		bare(t, x)
	})
}

// An Unlock ends the hold of another call, which is about to give it back because its context has ended. Fails when that
// leaves the hold for which the Unlock was meant: nobody would unlock it, and it would be renewed for ever.
func TestAHoldThatIsGivenBackThoughItWasUnlockedLeavesNone(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l, other := client(t, x).NewLock("a"), client(t, x).NewLock("a")
		for _, whole := range []bool{true, false} { // of the Unlock, or its first step
			rig.Must(t, l.Lock(x.By("me")))
			rig.Must(t, l.Lock(x.By("me")))
			late := redisson.Newest(l)
			if whole {
				rig.Must(t, l.Unlock())
				redisson.GiveBack(late)
			} else {
				taken := redisson.Take(l)
				redisson.GiveBack(late)
				rig.Must(t, taken.Release())
			}
			synctest.Wait()
			if n := l.HoldCount(); n != 0 {
				t.Errorf("%d holds are left", n)
			}
			rig.Must(t, other.Lock(t.Context()))
			rig.Must(t, other.Unlock())
			bare(t, x)
		}
	})
}

// Fails when Unlock ends a hold that has a Release of its own, or HoldCount leaves that hold out.
func TestUnlockOfRedissonSparesAHoldOfAcquire(t *testing.T) {
	for _, prefix := range everyLayout {
		t.Run(prefix, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				l, me := of(client(t, x), prefix), x.By("me")
				rig.Must(t, l.Lock(me))
				older, newer := acquired(me, t, l), acquired(me, t, l)
				for i, want := range [][2]error{{}, {nil, relock.ErrNotHeld}, {relock.ErrNotHeld, relock.ErrNotHeld}} {
					if n := l.HoldCount(); n != 3-i {
						t.Errorf("%d holds, want %d", n, 3-i)
					}
					rig.Must(t, l.Unlock())
					if older, newer := older.Err(), newer.Err(); !errors.Is(older, want[0]) || !errors.Is(newer, want[1]) {
						t.Errorf("after Unlock %d the holds of Acquire have the errors %v and %v, want %v", i+1, older, newer, want)
					}
				}
				rig.WantIs(t, l.Unlock(), relock.ErrNotHeld)
				bare(t, x)
			})
		})
	}
}

// The lease of the older hold ends, and the newer one is held.
// Fails when the first Unlock ends the newer one.
func TestUnlockOfRedissonEndsALostHoldFirst(t *testing.T) {
	for _, prefix := range everyLayout {
		t.Run(prefix, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				c := client(t, x, redisson.Defaults(redisson.TTL(10*time.Second), redisson.NoWatchdog()))
				l, me := of(c, prefix), x.By("me")
				rig.Must(t, l.Lock(me))
				virtual.Sleep(5 * time.Second)
				rig.Must(t, l.Lock(me))
				virtual.Sleep(5 * time.Second)
				rig.WantIs(t, l.Unlock(), relock.ErrLost)
				rig.Must(t, l.Unlock())
				synctest.Wait() // the end of the lost one is told to Redis in the background
				bare(t, x)
			})
		})
	}
}

// Fails when the token of what a holder did last cannot be asked for once its hold is lost.
func TestAHandleOfRedissonTellsTheTokenOfItsLostHold(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := client(t, x).NewLock("a", redisson.Fenced(), redisson.TTL(time.Second), redisson.NoWatchdog())
		rig.Must(t, l.Lock(t.Context()))
		virtual.Sleep(2 * time.Second)
		if l.HoldCount() != 0 || l.Token() != 1 {
			t.Errorf("%d holds and token %d, want a lost hold with token 1", l.HoldCount(), l.Token())
		}
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
		if l.Token() != 0 {
			t.Errorf("token %d of a handle without a hold", l.Token())
		}
		x.Redis.Del(t.Context(), "redisson_lock_token:{a}")
	})
}

// Fails when the owner's other holds are trusted until the next renewal.
func TestAnUnlockThatRedisDoesNotKnowLosesTheOthersOfItsOwner(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := client(t, x).NewLock("a", redisson.NoWatchdog())
		outer, err := l.Acquire(x.By("me"))
		rig.Must(t, err)
		rig.Must(t, l.Lock(x.By("me")))
		x.Server.FlushAll()
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
		rig.WantIs(t, outer.Err(), relock.ErrLost)
		rig.WantIs(t, outer.Release(), relock.ErrLost)
	})
}

// The last of an owner's holds has a short lease, and Redis the long one of the hold before.
// Fails when the client stops telling Redis of the end after the short one.
func TestAReleaseIsSentForTheLongestLeaseOfItsOwner(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := linked(t, x)
		long := c.NewLock("a", redisson.TTL(10*time.Minute))
		short := c.NewLock("a", redisson.TTL(time.Second))
		rig.Must(t, long.Lock(x.By("me")))
		rig.Must(t, short.Lock(x.By("me")))
		rig.Must(t, long.Unlock())
		heal := link.Hole()
		rig.WantIs(t, short.Unlock(), relock.ErrUnconfirmed)
		virtual.Sleep(time.Minute)
		heal()
		virtual.Sleep(10 * time.Second)
		if ok, err := client(t, x).NewLock("a").TryLock(t.Context(), 0); !ok || err != nil {
			t.Errorf("another owner after the outage: %v, %v", ok, err)
		}
	})
}

// Redis wakes one call of the owner, which has one place in the queue.
// Fails when another call of the owner, which could re-enter, sleeps until it asks by itself.
func TestAllCallsOfAnOwnerHearOfItsGrant(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		for _, opts := range [][]redisson.LockOption{nil, {redisson.Fair()}} {
			holder, c := client(t, x).NewLock("a", opts...), client(t, x)
			rig.Must(t, holder.Lock(t.Context()))
			var calls []rig.Going
			for range 3 {
				calls = append(calls, rig.Beside(func() error { return c.NewLock("a", opts...).Lock(x.By("me")) }))
				synctest.Wait()
			}
			rig.Must(t, holder.Unlock())
			virtual.Sleep(time.Second)
			for i, call := range calls {
				select {
				case err := <-call:
					rig.Must(t, err)
				default:
					t.Errorf("call %d still waits", i)
				}
			}
			rig.Must(t, c.Close())
			x.Server.FlushAll()
		}
	})
}

// The release of a nested hold is not answered, and the owner keeps another one.
// Fails when Redis is left with one hold too many until the owner acquires or releases again.
func TestTheReleaseOfANestedHoldIsSentUntilItIsAnswered(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := linked(t, x)
		l, me := c.NewLock("a"), x.By("me")
		outer, err := l.Acquire(me)
		rig.Must(t, err)
		rig.Must(t, l.Lock(me))
		heal := link.Hole()
		rig.WantIs(t, l.Unlock(), relock.ErrUnconfirmed)
		heal()
		virtual.Sleep(9 * time.Second)
		info, err := client(t, x).NewLock("a").Info(t.Context())
		rig.Must(t, err)
		if len(info.Holders) != 1 || info.Holders[0].Holds != 1 {
			t.Errorf("redis has %+v, want one hold", info.Holders)
		}
		rig.Must(t, outer.Release())
		bare(t, x)
	})
}

// Another owner holds the lock by the time.
// Fails when the owner waits for that one, or is told that the lock is taken: first it must unlock what it has lost.
func TestAnOwnerIsToldOfItsLossThoughTheLockIsTaken(t *testing.T) {
	for _, prefix := range everyLayout {
		t.Run(prefix, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				c, me := client(t, x), x.By("me")
				outer, inner := of(c, prefix), of(c, prefix)
				other := of(client(t, x), strings.Replace(prefix, "read", "write", 1)) // readers share
				rig.Must(t, outer.Lock(me))
				x.Server.FlushAll()
				rig.Must(t, other.Lock(t.Context()))
				_, err := inner.TryLock(me, 0)
				rig.WantIs(t, err, relock.ErrLost)
				call := rig.Beside(func() error { return inner.Lock(me) })
				rig.WantIs(t, rig.Returned(t, call), relock.ErrLost)
				rig.WantIs(t, outer.Unlock(), relock.ErrLost)
				rig.Must(t, other.Unlock())
				rig.Must(t, inner.Lock(me))
				rig.Must(t, inner.Unlock())
				synctest.Wait() // the end of the lost one is told to Redis in the background
				bare(t, x)
			})
		})
	}
}

// The release of an owner's last hold is repeated for a late copy of a nested request, whose call goes on meanwhile.
// Fails under the race detector when that call still writes to the session.
func TestACallOfASessionThatHasEndedLeavesItAlone(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		loadAll(t, x)
		c, link := linked(t, x)
		l, nested, me := c.NewLock("a"), c.NewLock("a"), x.By("me")
		rig.Must(t, l.Lock(me))
		fate(link, "acquire", 1, redistest.Lose)
		call := rig.Beside(func() error { return nested.Lock(me) })
		call.Pending(t, "the nested call")
		rig.Must(t, l.Unlock())
		rig.Must(t, <-call)
		virtual.Sleep(10 * time.Second)
		rig.Must(t, nested.Unlock())
		bare(t, x)
	})
}
