package relock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
)

// The cases of ReentrantLockTest, from the JSR-166 test suite, that speak of a
// lock without conditions. The number is their place in that class; a thread is
// a goroutine with an owner of its own, an interrupt the end of a context, and
// IllegalMonitorStateException is ErrNotHeld.

func TestTCK_L01_Constructor(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l := x.lock("a")
		wantHolds(t, l, 0)
		x.holders(l, "", 0)
		if keys := x.srv.Direct().Keys(); len(keys) != 0 {
			t.Errorf("keys %v, want none", keys)
		}
	})
}

func TestTCK_L02_Lock(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l := x.lock("a")
		noErr(t, l.Lock(x.by("me")))
		wantHolds(t, l, 1)
		x.holders(l, "me", 1)
		noErr(t, l.Unlock())
		wantHolds(t, l, 0)
		x.holders(l, "", 0)
	})
}

func TestTCK_L03_UnlockIMSE(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l := x.lock("a")
		wantIs(t, l.Unlock(), relock.ErrNotHeld)
		x.holders(l, "", 0)
		x.frees("a")
	})
}

func TestTCK_L04_TryLock(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l := x.lock("a", relock.Owner("me"))
		for i := range 2 {
			if got, err := l.TryLock(t.Context(), 0); !got || err != nil {
				t.Errorf("TryLock = %v, %v, want true, nil", got, err)
			}
			x.holders(l, "me", i+1)
		}
		noErr(t, l.Unlock())
		x.holders(l, "me", 1)
		noErr(t, l.Unlock())
		x.holders(l, "", 0)
	})
}

func TestTCK_L05_TryLockWhenLocked(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l := x.lock("a")
		noErr(t, l.Lock(x.by("me")))
		for _, other := range []*relock.Lock{l, x.lock("a")} {
			if got, err := other.TryLock(x.by("you"), 0); got || err != nil {
				t.Errorf("TryLock = %v, %v, want false, nil", got, err)
			}
			x.waits(l)
		}
		x.holders(l, "me", 1)
		noErr(t, l.Unlock())
	})
}

func TestTCK_L06_TryLockTimeout(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l, other := x.lock("a"), x.lock("a")
		noErr(t, l.Lock(x.by("me")))
		began := time.Now()
		if got, err := other.TryLock(x.by("you"), 25*time.Millisecond); got || err != nil {
			t.Errorf("TryLock = %v, %v, want false, nil", got, err)
		}
		if took := time.Since(began); took < 25*time.Millisecond {
			t.Errorf("TryLock took %v, want 25ms at least", took)
		}
		x.waits(l)
		noErr(t, l.Unlock())
	})
}

func TestTCK_L07_TryLockInterruptible(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l, other := x.lock("a"), x.lock("a")
		noErr(t, l.Lock(x.by("me")))
		ctx, interrupt := context.WithCancel(x.by("you"))
		got := false
		done := beside(func() (err error) { got, err = other.TryLock(ctx, time.Hour); return err })
		x.waits(l, "you")
		interrupt()
		wantIs(t, hasReturned(t, done), context.Canceled)
		if got {
			t.Error("TryLock = true, interrupted")
		}
		x.waits(l)
		x.holders(l, "me", 1)
		noErr(t, l.Unlock())
	})
}

func TestTCK_L08_LockInterruptibly(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l, other := x.lock("a"), x.lock("a")
		noErr(t, l.Lock(x.by("me")))
		ctx, interrupt := context.WithCancel(x.by("you"))
		done := beside(func() error { return other.Lock(ctx) })
		x.waits(l, "you")
		interrupt()
		wantIs(t, hasReturned(t, done), context.Canceled)
		x.waits(l)
		x.holders(l, "me", 1)
		noErr(t, l.Unlock())
	})
}

func TestTCK_L09_GetHoldCount(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		const deep = 20
		l := x.lock("a", relock.Owner("me"))
		for i := 1; i <= deep; i++ {
			noErr(t, l.Lock(t.Context()))
			wantHolds(t, l, i)
			x.holders(l, "me", i)
		}
		for i := deep; i > 0; i-- {
			noErr(t, l.Unlock())
			wantHolds(t, l, i-1)
			x.holders(l, "me", i-1)
		}
	})
}

func TestTCK_L10_IsLocked(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l, other := x.lock("a", relock.Owner("me")), x.lock("a")
		x.holders(l, "", 0)
		noErr(t, l.Lock(t.Context()))
		noErr(t, l.Lock(t.Context()))
		x.holders(other, "me", 2)
		noErr(t, l.Unlock())
		x.holders(l, "me", 1)
		noErr(t, l.Unlock())
		x.holders(l, "", 0)
		noErr(t, hasReturned(t, beside(func() error { return other.Lock(x.by("you")) })))
		x.holders(l, "you", 1)
		noErr(t, other.Unlock())
		x.holders(l, "", 0)
	})
}

// queueOfTwo takes L11 to L15 through their steps: a holder, two who queue, of
// whom the first is interrupted and the second served. look sees each state.
func queueOfTwo(t *testing.T, look func(t *testing.T, x *lab, l *relock.Lock, queued ...string)) {
	t.Helper()
	inLab(t, func(t *testing.T, x *lab) {
		l, t1, t2 := x.lock("a"), x.lock("a"), x.lock("a")
		look(t, x, l)
		noErr(t, l.Lock(x.by("me")))
		look(t, x, l)
		ctx, interrupt := context.WithCancel(x.by("t1"))
		first := beside(func() error { return t1.Lock(ctx) })
		synctest.Wait()
		look(t, x, l, "t1")
		second := beside(func() error { return t2.Lock(x.by("t2")) })
		synctest.Wait()
		look(t, x, l, "t1", "t2")
		interrupt()
		wantIs(t, hasReturned(t, first), context.Canceled)
		look(t, x, l, "t2")
		noErr(t, l.Unlock())
		noErr(t, hasReturned(t, second))
		look(t, x, l)
		noErr(t, t2.Unlock())
		look(t, x, l)
	})
}

func TestTCK_L11_HasQueuedThreads(t *testing.T) {
	queueOfTwo(t, func(t *testing.T, x *lab, l *relock.Lock, queued ...string) {
		if got := len(x.waiters(l)) > 0; got != (len(queued) > 0) {
			t.Errorf("somebody waits: %v, want %v", got, queued)
		}
	})
}

func TestTCK_L12_GetQueueLength(t *testing.T) {
	queueOfTwo(t, func(t *testing.T, x *lab, l *relock.Lock, queued ...string) {
		info, err := l.Info(t.Context())
		noErr(t, err)
		if info.Waiters != len(queued) {
			t.Errorf("%d waiters, want %v", info.Waiters, queued)
		}
	})
}

func TestTCK_L13_HasQueuedThreadNPE(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		wantIs(t, x.lock("a").Lock(x.by("")), relock.ErrInvalidOption)
		wantIs(t, x.lock("a", relock.Owner("")).Lock(t.Context()), relock.ErrInvalidOption)
	})
}

func TestTCK_L14_HasQueuedThread(t *testing.T) {
	queueOfTwo(t, func(t *testing.T, x *lab, l *relock.Lock, queued ...string) {
		member := map[string]bool{}
		for _, w := range x.waiters(l) {
			member[w.Owner] = true
		}
		want := map[string]bool{}
		for _, owner := range queued {
			want[owner] = true
		}
		for _, owner := range []string{"me", "t1", "t2"} {
			if member[owner] != want[owner] {
				t.Errorf("%s waits: %v, want %v", owner, member[owner], want[owner])
			}
		}
	})
}

func TestTCK_L15_GetQueuedThreads(t *testing.T) {
	queueOfTwo(t, func(_ *testing.T, x *lab, l *relock.Lock, queued ...string) { x.waits(l, queued...) })
}
