package real_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// TestExpiredLockOfACrashedProcessGoesToOneOfTwo has two clients see at the same
// instant that the lease of a dead holder is over.
func TestExpiredLockOfACrashedProcessGoesToOneOfTwo(t *testing.T) {
	srv := redistest.Real(t)
	for range rig.Rounds(4, 40) {
		holder := spawn(t, srv.Addr())
		token := holder.do(order{Do: "lock", Lock: "job", TTL: 300 * time.Millisecond}).N
		holder.kill()
		first, second := race(t, srv)
		rig.WantLater(t, token, first.Token())
		rig.Must(t, first.Release())
		rig.WantLater(t, first.Token(), rig.MustAcquire(t, second).Token())
		rig.Must(t, second.Unlock())
	}
}

// TestLateUnlockOfAFrozenHolderFreesNobody is the same with a holder that comes
// back to life afterwards and unlocks what it thinks is its own.
func TestLateUnlockOfAFrozenHolderFreesNobody(t *testing.T) {
	srv := redistest.Real(t)
	for range rig.Rounds(4, 40) {
		holder := spawn(t, srv.Addr())
		token := holder.do(order{Do: "lock", Lock: "job", TTL: 300 * time.Millisecond}).N
		holder.signal(syscall.SIGSTOP)
		unlocked := holder.begin(order{Do: "unlock", Lock: "job"})
		first, second := race(t, srv)
		rig.WantLater(t, token, first.Token())
		holder.signal(syscall.SIGCONT)
		if r := holder.hear(unlocked); !r.Lost {
			t.Errorf("Unlock after the lease = %q, want ErrLost", r.Err)
		}
		rig.WantState(t, second, "after the late unlock", first.Owner()+" x1 waiting 0")
		if ok, err := second.TryLock(t.Context(), 0); ok || err != nil {
			t.Errorf("TryLock after the late unlock = %v, %v, want false", ok, err)
		}
		rig.Must(t, first.Err())
		rig.Must(t, first.Release())
	}
}

// race lets two clients try without pause until one has the lock, and a while
// longer: it fails t unless it is exactly one, and returns its hold, and the
// other's handle.
func race(t testing.TB, srv *redistest.RealServer) (*relock.Hold, *relock.Lock) {
	t.Helper()
	var mu sync.Mutex
	holds := map[*relock.Lock]*relock.Hold{}
	var locks []*relock.Lock
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for range 2 {
		l := rig.Open(t, srv.Client(t)).NewLock("job", relock.TTL(30*time.Second))
		locks = append(locks, l)
		running.Go(func() {
			for left := 200; left > 0 && ctx.Err() == nil; runtime.Gosched() {
				h, err := l.TryAcquire(t.Context(), 0)
				mu.Lock()
				if err == nil {
					holds[l] = h
				} else if !errors.Is(err, relock.ErrNotAcquired) && !rig.Unheard(err) {
					t.Error(err)
				}
				if len(holds) > 0 {
					left-- // some more tries: the other one must go on failing
				}
				mu.Unlock()
				if err == nil {
					return
				}
			}
		})
	}
	stop := time.AfterFunc(time.Minute, cancel)
	running.Wait()
	stop.Stop()
	cancel()
	if len(holds) != 1 {
		t.Fatalf("%d of two clients got the lock, want one", len(holds))
	}
	if h := holds[locks[0]]; h != nil {
		return h, locks[1]
	}
	return holds[locks[1]], locks[0]
}
