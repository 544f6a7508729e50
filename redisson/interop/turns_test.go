package interop_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/redisson"
)

// soon is how long it may take until a waiter has the lock that another gave up.
const soon = 250 * time.Millisecond

// waits is how long a call has to go on to count as waiting.
const waits = 300 * time.Millisecond

// modes are the ways in which a lock is held by one alone.
var modes = []string{"lock", "fair", "fenced", "write"}

// TestEachIsWokenByTheOthersUnlock says how long the worst of several took.
func TestEachIsWokenByTheOthersUnlock(t *testing.T) {
	everywhere(t, func(x *lab) {
		java, c := x.java("j"), x.golang()
		for _, kind := range modes {
			worst := [2]time.Duration{}
			for i := range 5 {
				name := fmt.Sprint(kind, i)
				l := handle(c, kind, name)
				for turn, d := range wakings(x, java, l, kind, name) {
					worst[turn] = max(worst[turn], d)
				}
				x.leaves(kind, name)
			}
			x.Logf("%s: Go is woken by Java's unlock within %v, Java by Go's within %v (worst of 5)", kind, worst[0], worst[1])
			if max(worst[0], worst[1]) > soon {
				x.Errorf("%s: longer than %v", kind, soon)
			}
		}
	})
}

// wakings has Go wait for Java, then Java for Go, and returns how long each took.
func wakings(x *lab, java string, l *redisson.Lock, kind, name string) (took [2]time.Duration) {
	x.tell(java, 1, "lock", kind, name).ok()
	got := begin(x, l)
	x.waiting(got)
	began := time.Now()
	unlocked := x.tell(java, 1, "unlock", kind, name)
	within(x, 5*time.Second, "the lock after Java's unlock", got)
	took[0] = time.Since(began)
	unlocked.ok()

	again := x.tell(java, 1, "lock", kind, name)
	again.pending(waits)
	began = time.Now()
	must(x, l.Unlock())
	again.ok()
	took[1] = time.Since(began)
	x.tell(java, 1, "unlock", kind, name).ok()
	return took
}

// waiting fails unless a call goes on.
func (x *lab) waiting(got <-chan error) {
	x.Helper()
	select {
	case err := <-got:
		x.Fatalf("it did not wait: %v", err)
	case <-time.After(waits):
	}
}

func TestNestedHoldsExcludeTheOtherUntilTheLast(t *testing.T) {
	everywhere(t, func(x *lab) {
		java, c := x.java("j"), x.golang()
		me := relock.WithOwner(x.Context(), "me")
		for _, kind := range modes {
			l := handle(c, kind, kind)
			must(x, l.Lock(me))
			must(x, l.Lock(me))
			x.tries(java, kind, "false", 0)
			must(x, l.Unlock())
			x.tries(java, kind, "false", 100)
			must(x, l.Unlock())
			x.tries(java, kind, "true", 100)
			x.tell(java, 1, "lock", kind, kind).ok()
			if n := x.tell(java, 1, "count", kind, kind).ok(); n != "2" {
				x.Errorf("%s: Java's nested count is %s", kind, n)
			}
			x.goTries(l, false, 0)
			x.tell(java, 1, "unlock", kind, kind).ok()
			x.goTries(l, false, 100*time.Millisecond)
			x.tell(java, 1, "unlock", kind, kind).ok()
			x.goTries(l, true, 100*time.Millisecond)
			must(x, l.Unlock())
			x.leaves(kind, kind)
		}
	})
}

// tries has Java try for a lock of the kind's name, for so many ms.
func (x *lab) tries(java, kind, want string, wait int) {
	x.Helper()
	began := time.Now()
	if got := x.tell(java, 1, "try", kind, kind, wait, -1).ok(); got != want {
		x.Errorf("%s: Java's tryLock(%d ms) is %s, want %s", kind, wait, got, want)
	}
	if took := time.Since(began); want == "false" && took < time.Duration(wait)*time.Millisecond {
		x.Errorf("%s: Java's tryLock(%d ms) took %v", kind, wait, took)
	}
}

func (x *lab) goTries(l *redisson.Lock, want bool, wait time.Duration) {
	x.Helper()
	began := time.Now()
	if got, err := l.TryLock(x.Context(), wait); got != want || err != nil {
		x.Errorf("%s: TryLock(%v) = %v, %v, want %v", l.Name(), wait, got, err, want)
	}
	if took := time.Since(began); !want && (took < wait || wait == 0 && took > soon) {
		x.Errorf("%s: TryLock(%v) took %v", l.Name(), wait, took)
	}
}

// TestJavaSeesOfOurHoldersWhatItSeesOfItsOwn while we hold, and after.
func TestJavaSeesOfOurHoldersWhatItSeesOfItsOwn(t *testing.T) {
	onOneServer(t, func(x *lab) {
		java, other, c := x.java("j"), x.java("o"), x.golang()
		for _, kind := range modes {
			l := handle(c, kind, kind)
			must(x, l.Lock(x.Context()))
			ours := x.sees(java, kind)
			must(x, l.Unlock())
			x.tell(other, 2, "lock", kind, kind).ok()
			theirs := x.sees(java, kind)
			info, err := l.Info(context.Background())
			must(x, err)
			x.tell(other, 2, "unlock", kind, kind).ok()
			if ours != theirs || ours != "locked true, held false, count 0, ttl true" {
				x.Errorf("%s: Java sees of ours: %s; of its own: %s", kind, ours, theirs)
			}
			if len(info.Holders) != 1 || info.Holders[0].Holds != 1 || info.Holders[0].TTL <= 0 {
				x.Errorf("%s: Go sees of Java's: %+v", kind, info)
			}
			if free := x.sees(java, kind); free != "locked false, held false, count 0, ttl false" {
				x.Errorf("%s: Java sees of a free lock: %s", kind, free)
			}
		}
	})
}

// sees is what a client of Java's sees of a lock; its ttl is whether there is one that fits.
func (x *lab) sees(java, kind string) string {
	x.Helper()
	ask := func(op string) string { return x.tell(java, 1, op, kind, kind).ok() }
	var ms int64
	_, err := fmt.Sscan(ask("ttl"), &ms)
	must(x, err)
	return fmt.Sprintf("locked %s, held %s, count %s, ttl %v", ask("locked"), ask("held"), ask("count"), ms > 0 && ms <= watchdog.Milliseconds())
}
