package contract_test

import (
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// sharedLockers are handles on which the holds of several grants live at once, and the lock
// by which somebody else asks for all of it.
var sharedLockers = map[string]func(c, other *relock.Client) (relock.Locker, *relock.Lock){
	"reader": func(c, other *relock.Client) (relock.Locker, *relock.Lock) {
		return c.NewRWLock("a").RLocker(), other.NewRWLock("a").WLocker()
	},
	"fair reader": func(c, other *relock.Client) (relock.Locker, *relock.Lock) {
		return c.NewRWLock("a", relock.Fair()).RLocker(), other.NewRWLock("a", relock.Fair()).WLocker()
	},
	"semaphore": func(c, other *relock.Client) (relock.Locker, *relock.Lock) {
		return c.NewSemaphore("a", 1), other.NewSemaphore("a", 1)
	},
	"multi": func(c, other *relock.Client) (relock.Locker, *relock.Lock) {
		return relock.NewMulti(c.NewRWLock("a").RLocker(), c.NewSemaphore("b", 9)), other.NewRWLock("a").WLocker()
	},
}

// The Unlock of a caller that had not heard of its loss ended the hold of one that came after
// the loss, and a writer had the lock beside that.
func TestUnlockOfAnOldReaderOrPermitLeavesALaterOneOfItsHandle(t *testing.T) {
	for kind, handles := range sharedLockers {
		t.Run(kind, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				l, writer := handles(x.Client(), x.Client())
				rig.Must(t, l.Lock(t.Context()))
				virtual.Sleep(time.Second)
				rig.Must(t, x.Redis.FlushAll(t.Context()).Err())
				rig.Must(t, l.Lock(t.Context())) // by another goroutine
				rig.WantIs(t, l.Unlock(), relock.ErrLost)
				x.Refuses(writer)
				virtual.Sleep(time.Minute)
				x.Refuses(writer)
				rig.Must(t, l.Unlock())
				rig.WantIs(t, l.Unlock(), relock.ErrNotHeld)
				x.Free(writer)
			})
		})
	}
}

// Fails when the Unlocks of readers and permits that were not lost end any other number of
// holds, or leave one that nobody can end.
func TestEveryUnlockOfAHandleThatIsSharedEndsOneHold(t *testing.T) {
	for kind, handles := range sharedLockers {
		if kind == "semaphore" {
			continue // it has one permit
		}
		t.Run(kind, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				l, writer := handles(x.Client(), x.Client())
				for range 5 {
					rig.Must(t, l.Lock(t.Context()))
				}
				for range 5 {
					x.Refuses(writer)
					rig.Must(t, l.Unlock())
				}
				rig.WantIs(t, l.Unlock(), relock.ErrNotHeld)
				x.Free(writer)
			})
		})
	}
}

// A Multi of fair locks had two holds, of which the first was lost: see
// TestAHandleHasNoSecondHoldBeforeTheFirstIsUnlocked.
func TestAMultiHasNoSecondHoldBeforeTheFirstIsUnlocked(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, other := x.Client(), x.Lock("a", relock.Fair())
		m := relock.NewMulti(c.NewLock("a", relock.Fair()), c.NewLock("b", relock.Fair()))
		lock := func() error { return m.Lock(t.Context()) }
		second := dataLost(x, lock, lock)
		second.Pending(t, "Lock of a Multi whose lost hold is not unlocked")
		virtual.Sleep(time.Hour)
		rig.Must(t, other.Lock(t.Context()))
		rig.Must(t, other.Unlock())
		rig.WantIs(t, m.Unlock(), relock.ErrLost)
		rig.Must(t, rig.Returned(t, second))
		x.Refuses(other)
		rig.Must(t, m.Unlock())
		rig.WantIs(t, m.Unlock(), relock.ErrNotHeld)
		x.Free(other)
	})
}
