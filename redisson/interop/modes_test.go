package interop_test

import (
	"testing"
	"time"

	"github.com/relock-go/relock"
)

func TestReadersOfBothShareAndKeepWritersOut(t *testing.T) {
	everywhere(t, func(x *lab) {
		java, c := x.java("j"), x.golang()
		rw := c.NewRWLock("rw")
		x.tell(java, 1, "lock", "read", "rw").ok()
		must(x, rw.RLock(x.Context()))
		writer := x.tell(java, 2, "lock", "write", "rw")
		writer.pending(waits)
		x.goTries(rw.WLocker(), false, 0)
		x.tell(java, 1, "unlock", "read", "rw").ok() // the last of Java's readers leaves the hash to ours
		writer.pending(2 * watchdog)                 // which is renewed: the hash,
		x.tell(java, 3, "lock", "read", "rw").ok()
		x.tell(java, 3, "unlock", "read", "rw").ok() // and the key, which Java looks at
		writer.pending(waits)
		must(x, rw.RUnlock())
		writer.soon("our last reader has unlocked")
		reader := begin(x, rw.RLocker())
		x.waiting(reader)
		x.tell(java, 2, "unlock", "write", "rw").ok()
		within(x, soon, "the read lock", reader)
		must(x, rw.RUnlock())
		x.leaves("read", "rw")
	})
}

func TestOurReadersLeaveTheHashToJavas(t *testing.T) {
	onOneServer(t, func(x *lab) {
		java, c := x.java("j"), x.golang()
		rw := c.NewRWLock("rw")
		must(x, rw.RLock(x.Context()))
		x.tell(java, 1, "lock", "read", "rw").ok()
		must(x, rw.RUnlock())
		writer := begin(x, rw)
		select {
		case err := <-writer:
			t.Fatalf("a writer got in beside a reader of Java's: %v", err)
		case <-time.After(2 * watchdog):
		}
		x.tell(java, 1, "unlock", "read", "rw").ok()
		within(x, soon, "the write lock", writer)
		must(x, rw.Unlock())
		x.leaves("write", "rw")
	})
}

// TestDowngradeLetsTheOthersReadersIn: ours tells them, Java's tells nobody, and readers
// here poll.
func TestDowngradeLetsTheOthersReadersIn(t *testing.T) {
	everywhere(t, func(x *lab) {
		java, c := x.java("j"), x.golang()
		rw := c.NewRWLock("rw")
		me := relock.WithOwner(x.Context(), "me")
		must(x, rw.Lock(me))
		reader := x.tell(java, 1, "lock", "read", "rw")
		reader.pending(waits)
		must(x, rw.Downgrade(me))
		reader.soon("our downgrade")
		x.tries2(java, "write", "rw", "false")
		must(x, rw.RUnlock())
		x.tell(java, 1, "unlock", "read", "rw").ok()

		x.tell(java, 2, "lock", "write", "rw").ok()
		x.tell(java, 2, "lock", "read", "rw").ok()
		got := begin(x, rw.RLocker())
		x.waiting(got)
		x.tell(java, 2, "unlock", "write", "rw").ok()
		within(x, watchdog+soon, "our read lock after Java's downgrade", got)
		x.goTries(rw.WLocker(), false, 0)
		must(x, rw.RUnlock())
		x.tell(java, 2, "unlock", "read", "rw").ok()
		x.leaves("read", "rw")
	})
}

// tries2 has Java's thread 3 try for a lock once.
func (x *lab) tries2(java, kind, name, want string) {
	x.Helper()
	if got := x.tell(java, 3, "try", kind, name, 0, -1).ok(); got != want {
		x.Errorf("%s %s: Java's tryLock is %s, want %s", kind, name, got, want)
	}
}

// TestForceUnlockOfEitherSideLetsTheOtherIn: and our holder is told by its next renewal.
func TestForceUnlockOfEitherSideLetsTheOtherIn(t *testing.T) {
	everywhere(t, func(x *lab) {
		java, c := x.java("j"), x.golang()
		for _, kind := range modes {
			l, again := handle(c, kind, kind), handle(c, kind, kind)
			x.tell(java, 1, "lock", kind, kind).ok()
			got := begin(x, l)
			x.waiting(got)
			if ok, err := again.ForceUnlock(x.Context()); !ok || err != nil {
				x.Errorf("%s: ForceUnlock = %v, %v", kind, ok, err)
			}
			within(x, soon, kind+" after our ForceUnlock", got)
			lost := l.Lost()
			waiter := x.tell(java, 2, "lock", kind, kind)
			waiter.pending(waits)
			if ok := x.tell(java, 3, "force", kind, kind).ok(); ok != "true" {
				x.Errorf("%s: Java's forceUnlock is %s", kind, ok)
			}
			waiter.ok()
			select {
			case <-lost:
			case <-time.After(watchdog/3 + time.Second):
				x.Errorf("%s: our holder was not told within a third of its TTL", kind)
			}
			if err := l.Unlock(); err == nil {
				x.Errorf("%s: Unlock of a lock that was forced is nil", kind)
			}
			x.tell(java, 2, "unlock", kind, kind).ok()
			x.leaves(kind, kind)
		}
	})
}
