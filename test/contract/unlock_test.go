package contract_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

func TestUnlockWithoutHoldIsNotHeld(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a")
		rig.WantIs(t, l.Unlock(), relock.ErrNotHeld)
		rig.Must(t, l.Lock(t.Context()))
		rig.Must(t, l.Unlock())
		err := l.Unlock()
		rig.WantIs(t, err, relock.ErrNotHeld)
		rig.WantNot(t, err, relock.ErrLost)
	})
}

func TestUnlockByAnotherHandleChangesNothing(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		l, sameClient, other := c.NewLock("a"), c.NewLock("a"), x.Lock("a")
		rig.Must(t, l.Lock(x.By("me")))
		rig.WantIs(t, sameClient.Unlock(), relock.ErrNotHeld)
		rig.WantIs(t, other.Unlock(), relock.ErrNotHeld)
		rig.WantIs(t, x.Lock("a", relock.Owner("me")).Unlock(), relock.ErrNotHeld)
		x.Holders(l, "me", 1)
		x.Refuses(other)
		rig.Must(t, l.Unlock())
	})
}

func TestEachSuccessNeedsExactlyOneUnlock(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a", relock.Owner("me"))
		for range 4 {
			rig.Must(t, l.Lock(t.Context()))
		}
		for left := 3; left >= 0; left-- {
			x.Refuses(x.Lock("a"))
			rig.Must(t, l.Unlock())
			x.Holders(l, "me", left)
		}
		rig.WantIs(t, l.Unlock(), relock.ErrNotHeld)
		x.Frees("a")
	})
}

func TestHoldsEndInAnyOrder(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a", relock.Owner("me"))
		var holds []*relock.Hold
		for range 3 {
			h, err := l.Acquire(t.Context())
			rig.Must(t, err)
			holds = append(holds, h)
		}
		for left, i := range []int{0, 2, 1} {
			rig.Must(t, holds[i].Release())
			x.Holders(l, "me", 2-left)
			rig.WantIs(t, holds[i].Err(), relock.ErrNotHeld)
		}
		x.Frees("a")
	})
}

func TestContextBoundsTheWaitAndNeitherHoldNorUnlock(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a")
		ctx, cancel := context.WithCancel(t.Context())
		h, err := l.Acquire(ctx)
		rig.Must(t, err)
		cancel()
		virtual.Sleep(5 * time.Minute)
		rig.Must(t, h.Err())
		x.Refuses(l)
		rig.Must(t, l.Unlock())
		x.Frees("a")
	})
}

// TestUnlockGivesUpAfterTheReleaseTimeout: the hold has ended here, and the
// client goes on telling Redis so, long before the lease would end.
func TestUnlockGivesUpAfterTheReleaseTimeout(t *testing.T) {
	for want, opts := range map[time.Duration][]relock.Option{
		5 * time.Second:        nil,
		700 * time.Millisecond: {relock.ReleaseTimeout(700 * time.Millisecond)},
	} {
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			c, link := x.Linked(opts...)
			l := c.NewLock("a", relock.TTL(time.Hour))
			h, err := l.Acquire(t.Context())
			rig.Must(t, err)
			heal := link.Cut()
			began := time.Now()
			err = l.Unlock()
			rig.WantIs(t, err, relock.ErrUnconfirmed)
			rig.WantNot(t, err, relock.ErrNotHeld)
			if took := time.Since(began); took != want {
				t.Errorf("Unlock took %v, want %v", took, want)
			}
			rig.WantIs(t, h.Err(), relock.ErrNotHeld)
			rig.WantIs(t, l.Unlock(), relock.ErrNotHeld)
			if l.HoldCount() != 0 || l.Token() != 0 {
				t.Errorf("%d holds, token %d after Unlock", l.HoldCount(), l.Token())
			}
			x.Refuses(x.Lock("a"))
			heal()
			virtual.Sleep(2 * time.Second)
			x.Frees("a")
		})
	}
}

// Fails when the script's text is given a time of its own: the server has lost it, says so late, and then says no more.
func TestUnlockWhoseScriptIsNotKnownReturnsWithinTheReleaseTimeout(t *testing.T) {
	for late := 300 * time.Millisecond; late < time.Second; late += 25 * time.Millisecond {
		rig.Play(t, func(t *testing.T, x *rig.Lab) {
			c, link := x.Linked(relock.ReleaseTimeout(time.Second))
			rig.End(t, x.Take(c.NewLock("before")))
			l := c.NewLock("a")
			rig.Must(t, l.Lock(t.Context()))
			x.Server.FlushScripts()
			said := make(chan struct{})
			time.AfterFunc(late, func() { close(said) })
			link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
				switch {
				case cmd.Is("evalsha"):
					return redistest.Hold(said)
				case cmd.Is("eval"):
					return redistest.Lose
				}
				return redistest.Pass
			})
			began := time.Now()
			rig.WantIs(t, l.Unlock(), relock.ErrUnconfirmed)
			if took := time.Since(began); took > time.Second {
				t.Errorf("the script is said to be unknown after %v: Unlock took %v, want 1s", late, took)
			}
			link.OnCommand(nil)
			virtual.Sleep(10 * time.Second)
		})
	}
}

func TestUnlockOfAReentryGivesUpAfterTheReleaseTimeout(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		l := c.NewLock("a", relock.TTL(time.Hour), relock.Owner("me"))
		rig.Must(t, l.Lock(t.Context()))
		rig.Must(t, l.Lock(t.Context()))
		heal := link.Cut()
		began := time.Now()
		rig.WantIs(t, l.Unlock(), relock.ErrUnconfirmed)
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("Unlock took %v, want 5s", took)
		}
		heal()
		virtual.Sleep(2 * time.Second)
		x.Holders(l, "me", 1)
		rig.Must(t, l.Unlock())
		x.Frees("a")
	})
}

// TestUnlockWhoseReplyIsLostIsConfirmedByTheNextTry: the second try finds
// nothing, which is no loss.
func TestUnlockWhoseReplyIsLostIsConfirmedByTheNextTry(t *testing.T) {
	for _, verdict := range []redistest.Verdict{redistest.SwallowReply, redistest.CutReply} {
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			c, link := x.Linked()
			l := c.NewLock("a")
			rig.Must(t, l.Lock(t.Context()))
			rig.Must(t, l.Unlock())
			rig.Must(t, l.Lock(t.Context()))
			lost := false
			link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
				if !lost && rig.Runs(cmd, "release") {
					lost = true
					return verdict
				}
				return redistest.Pass
			})
			rig.Must(t, l.Unlock())
			if !lost {
				t.Error("no reply was lost")
			}
			x.Frees("a")
		})
	}
}

func TestUnlockOfWhatRedisLostIsLost(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a")
		rig.Must(t, l.Lock(t.Context()))
		x.Server.FlushAll()
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
		named := x.Lock("b", relock.Owner("me"))
		rig.Must(t, named.Lock(t.Context()))
		rig.Must(t, named.Lock(t.Context()))
		x.Server.FlushAll()
		rig.WantIs(t, named.Unlock(), relock.ErrLost)
		rig.WantIs(t, named.Unlock(), relock.ErrLost)
		rig.WantIs(t, named.Unlock(), relock.ErrNotHeld)
	})
}

// TestUnlockHandsTheLockToTheLongestWaiter: in one process and across several,
// without any time passing.
func TestUnlockHandsTheLockToTheLongestWaiter(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a")
		rig.Must(t, l.Lock(t.Context()))
		var done []<-chan error
		var locks []*relock.Lock
		for range 4 {
			other := x.Lock("a")
			locks = append(locks, other)
			done = append(done, rig.Beside(func() error { return other.Lock(t.Context()) }))
			synctest.Wait()
			virtual.Sleep(time.Millisecond)
		}
		for i := range done {
			rig.StillWaits(t, done[i])
			rig.Must(t, l.Unlock())
			rig.Must(t, rig.Returned(t, done[i]))
			l = locks[i]
		}
		rig.Must(t, l.Unlock())
	})
}

// TestUnlockAfterALossLeavesTheHoldsOfOthersAlone is the defect that two holds
// of one owner on one handle had: after a loss Unlock ended the hold of Do,
// whose own release then found none, and the other one blocked the handle.
func TestUnlockAfterALossLeavesTheHoldOfDo(t *testing.T) {
	for _, lockFirst := range []bool{false, true} {
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			l := x.Lock("a", relock.Owner("me"), relock.NoWatchdog())
			if lockFirst {
				rig.Must(t, l.Lock(t.Context()))
			}
			err := l.Do(t.Context(), func(context.Context) error {
				if !lockFirst {
					rig.Must(t, l.Lock(t.Context()))
				}
				virtual.Sleep(time.Minute)
				rig.WantIs(t, l.Unlock(), relock.ErrLost)
				return nil
			})
			rig.WantIs(t, err, relock.ErrLost)
			rig.WantIs(t, l.Unlock(), relock.ErrNotHeld)
			rig.Must(t, l.Lock(t.Context()))
			rig.Must(t, l.Unlock())
		})
	}
}
