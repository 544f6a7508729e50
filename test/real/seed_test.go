package real_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
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
	r := racers{holds: map[*relock.Lock]*relock.Hold{}}
	var locks []*relock.Lock
	var running sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	for range 2 {
		l := rig.Open(t, srv.Client(t)).NewLock("job")
		locks = append(locks, l)
		running.Go(func() {
			for left := 200; left > 0 && ctx.Err() == nil; runtime.Gosched() {
				held, over := r.try(t, l)
				if held {
					return
				}
				if over {
					left-- // some more tries: the other one must go on failing
				}
			}
		})
	}
	running.Wait()
	cancel()
	if len(r.holds) != 1 {
		t.Fatalf("%d of two clients got the lock, want one", len(r.holds))
	}
	if r.holds[locks[0]] == nil {
		slices.Reverse(locks)
	}
	return r.holds[locks[0]], locks[1]
}

// racers are those who want one lock, and the holds of those who got it.
type racers struct {
	mu    sync.Mutex
	holds map[*relock.Lock]*relock.Hold
}

// try makes one attempt. The race is over when anybody has won it.
func (r *racers) try(t testing.TB, l *relock.Lock) (held, over bool) {
	t.Helper()
	h, err := l.TryAcquire(t.Context(), 0)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.holds[l] = h
	} else if !errors.Is(err, relock.ErrNotAcquired) && !rig.Unheard(err) {
		t.Error(err)
	}
	return err == nil, len(r.holds) > 0
}
