package relock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
)

func TestUnlockWithoutHoldIsNotHeld(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l := x.lock("a")
		wantIs(t, l.Unlock(), relock.ErrNotHeld)
		noErr(t, l.Lock(t.Context()))
		noErr(t, l.Unlock())
		err := l.Unlock()
		wantIs(t, err, relock.ErrNotHeld)
		wantNot(t, err, relock.ErrLost)
	})
}

func TestUnlockByAnotherHandleChangesNothing(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c := x.client()
		l, sameClient, other := c.NewLock("a"), c.NewLock("a"), x.lock("a")
		noErr(t, l.Lock(x.by("me")))
		wantIs(t, sameClient.Unlock(), relock.ErrNotHeld)
		wantIs(t, other.Unlock(), relock.ErrNotHeld)
		wantIs(t, x.lock("a", relock.Owner("me")).Unlock(), relock.ErrNotHeld)
		x.holders(l, "me", 1)
		x.refuses(other)
		noErr(t, l.Unlock())
	})
}

func TestEachSuccessNeedsExactlyOneUnlock(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l := x.lock("a", relock.Owner("me"))
		for range 4 {
			noErr(t, l.Lock(t.Context()))
		}
		for left := 3; left >= 0; left-- {
			x.refuses(x.lock("a"))
			noErr(t, l.Unlock())
			x.holders(l, "me", left)
		}
		wantIs(t, l.Unlock(), relock.ErrNotHeld)
		x.frees("a")
	})
}

func TestHoldsEndInAnyOrder(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l := x.lock("a", relock.Owner("me"))
		var holds []*relock.Hold
		for range 3 {
			h, err := l.Acquire(t.Context())
			noErr(t, err)
			holds = append(holds, h)
		}
		for left, i := range []int{0, 2, 1} {
			noErr(t, holds[i].Release())
			x.holders(l, "me", 2-left)
			wantIs(t, holds[i].Err(), relock.ErrNotHeld)
		}
		x.frees("a")
	})
}

func TestContextBoundsTheWaitAndNeitherHoldNorUnlock(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l := x.lock("a")
		ctx, cancel := context.WithCancel(t.Context())
		h, err := l.Acquire(ctx)
		noErr(t, err)
		cancel()
		time.Sleep(5 * time.Minute)
		noErr(t, h.Err())
		x.refuses(l)
		noErr(t, l.Unlock())
		x.frees("a")
	})
}

// TestUnlockGivesUpAfterTheReleaseTimeout: the hold has ended here, and the
// client goes on telling Redis so, long before the lease would end.
func TestUnlockGivesUpAfterTheReleaseTimeout(t *testing.T) {
	for want, opts := range map[time.Duration][]relock.Option{
		5 * time.Second:        nil,
		700 * time.Millisecond: {relock.ReleaseTimeout(700 * time.Millisecond)},
	} {
		inLab(t, func(t *testing.T, x *lab) {
			c, link := x.linked(opts...)
			l := c.NewLock("a", relock.TTL(time.Hour))
			h, err := l.Acquire(t.Context())
			noErr(t, err)
			heal := link.Cut()
			began := time.Now()
			err = l.Unlock()
			wantIs(t, err, relock.ErrUnconfirmed)
			wantNot(t, err, relock.ErrNotHeld)
			if took := time.Since(began); took != want {
				t.Errorf("Unlock took %v, want %v", took, want)
			}
			wantIs(t, h.Err(), relock.ErrNotHeld)
			wantIs(t, l.Unlock(), relock.ErrNotHeld)
			if l.HoldCount() != 0 || l.Token() != 0 {
				t.Errorf("%d holds, token %d after Unlock", l.HoldCount(), l.Token())
			}
			x.refuses(x.lock("a"))
			heal()
			time.Sleep(2 * time.Second)
			x.frees("a")
		})
	}
}

func TestUnlockOfAReentryGivesUpAfterTheReleaseTimeout(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c, link := x.linked()
		l := c.NewLock("a", relock.TTL(time.Hour), relock.Owner("me"))
		noErr(t, l.Lock(t.Context()))
		noErr(t, l.Lock(t.Context()))
		heal := link.Cut()
		began := time.Now()
		wantIs(t, l.Unlock(), relock.ErrUnconfirmed)
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("Unlock took %v, want 5s", took)
		}
		heal()
		time.Sleep(2 * time.Second)
		x.holders(l, "me", 1)
		noErr(t, l.Unlock())
		x.frees("a")
	})
}

// TestUnlockWhoseReplyIsLostIsConfirmedByTheNextTry: the second try finds
// nothing, which is no loss.
func TestUnlockWhoseReplyIsLostIsConfirmedByTheNextTry(t *testing.T) {
	for _, verdict := range []redistest.Verdict{redistest.SwallowReply, redistest.CutReply} {
		inLab(t, func(t *testing.T, x *lab) {
			c, link := x.linked()
			l := c.NewLock("a")
			noErr(t, l.Lock(t.Context()))
			noErr(t, l.Unlock())
			noErr(t, l.Lock(t.Context()))
			lost := false
			link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
				if !lost && runs(cmd, "release") {
					lost = true
					return verdict
				}
				return redistest.Pass
			})
			noErr(t, l.Unlock())
			if !lost {
				t.Error("no reply was lost")
			}
			x.frees("a")
		})
	}
}

func TestUnlockOfWhatRedisLostIsLost(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l := x.lock("a")
		noErr(t, l.Lock(t.Context()))
		x.srv.FlushAll()
		wantIs(t, l.Unlock(), relock.ErrLost)
		named := x.lock("b", relock.Owner("me"))
		noErr(t, named.Lock(t.Context()))
		noErr(t, named.Lock(t.Context()))
		x.srv.FlushAll()
		wantIs(t, named.Unlock(), relock.ErrLost)
		wantIs(t, named.Unlock(), relock.ErrLost)
		wantIs(t, named.Unlock(), relock.ErrNotHeld)
	})
}

// TestUnlockHandsTheLockToTheLongestWaiter: in one process and across several,
// without any time passing.
func TestUnlockHandsTheLockToTheLongestWaiter(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l := x.lock("a")
		noErr(t, l.Lock(t.Context()))
		var done []<-chan error
		var locks []*relock.Lock
		for range 4 {
			other := x.lock("a")
			locks = append(locks, other)
			done = append(done, beside(func() error { return other.Lock(t.Context()) }))
			synctest.Wait()
			time.Sleep(time.Millisecond)
		}
		for i := range done {
			stillWaits(t, done[i])
			noErr(t, l.Unlock())
			noErr(t, hasReturned(t, done[i]))
			l = locks[i]
		}
		noErr(t, l.Unlock())
	})
}

// TestUnlockAfterALossLeavesTheHoldsOfOthersAlone is the defect that two holds
// of one owner on one handle had: after a loss Unlock ended the hold of Do,
// whose own release then found none, and the other one blocked the handle.
func TestUnlockAfterALossLeavesTheHoldOfDo(t *testing.T) {
	for _, lockFirst := range []bool{false, true} {
		inLab(t, func(t *testing.T, x *lab) {
			l := x.lock("a", relock.Owner("me"), relock.NoWatchdog())
			if lockFirst {
				noErr(t, l.Lock(t.Context()))
			}
			err := l.Do(t.Context(), func(context.Context) error {
				if !lockFirst {
					noErr(t, l.Lock(t.Context()))
				}
				time.Sleep(time.Minute)
				wantIs(t, l.Unlock(), relock.ErrLost)
				return nil
			})
			wantIs(t, err, relock.ErrLost)
			wantIs(t, l.Unlock(), relock.ErrNotHeld)
			noErr(t, l.Lock(t.Context()))
			noErr(t, l.Unlock())
		})
	}
}
