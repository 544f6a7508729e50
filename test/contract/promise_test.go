package contract_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// A signalled waiter stands in the queue when its client ends.
// Fails when a release of a queued waiter drops its signal.
func TestSignalOfAWaiterWhoseClientClosesGoesToTheNext(t *testing.T) {
	for name, opts := range map[string][]relock.LockOption{"plain": nil, "fair": {relock.Fair()}} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				p := parties(x, 3, opts...)
				p[0].sleeps(x)
				second := p[1].sleeps(x)
				p[2].signals(x)
				rig.Must(t, p[0].Close())
				synctest.Wait()
				began := x.Now()
				rig.Must(t, p[2].l.Unlock())
				second.Woken()
				if took := x.Now() - began; took > 0 {
					t.Errorf("the next waiter was woken after %v", took)
				}
				rig.Must(t, p[1].l.Unlock())
			})
		})
	}
}

// wakeUps are the messages that a client waits for.
var wakeUps = map[string]func(x *rig.Lab, a, b *relock.Client){
	"plain": func(x *rig.Lab, a, b *relock.Client) { handsOver(x, a.NewLock("l"), b.NewLock("l")) },
	"fair": func(x *rig.Lab, a, b *relock.Client) {
		handsOver(x, a.NewLock("l", relock.Fair()), b.NewLock("l", relock.Fair()))
	},
	"write": func(x *rig.Lab, a, b *relock.Client) {
		handsOver(x, a.NewRWLock("l").RLocker(), b.NewRWLock("l").WLocker())
	},
	"read": func(x *rig.Lab, a, b *relock.Client) {
		handsOver(x, a.NewRWLock("l").WLocker(), b.NewRWLock("l").RLocker())
	},
	"semaphore": func(x *rig.Lab, a, b *relock.Client) { handsOver(x, a.NewSemaphore("l", 1), b.NewSemaphore("l", 1)) },
	"condition": func(x *rig.Lab, a, b *relock.Client) {
		there, here := b.NewLock("l"), a.NewLock("l")
		rig.Must(x.T, there.Lock(x.T.Context()))
		s := x.Sleeps(x.T.Context(), there.NewCond("c"), 0)
		rig.Must(x.T, here.Lock(x.T.Context()))
		rig.Must(x.T, here.NewCond("c").Signal(x.T.Context()))
		rig.Must(x.T, here.Unlock())
		s.Woken()
		rig.Must(x.T, there.Unlock())
	},
	"force": func(x *rig.Lab, a, b *relock.Client) {
		h := x.Take(b.NewLock("l"))
		_, err := a.NewLock("l").ForceUnlock(x.T.Context())
		rig.Must(x.T, err)
		synctest.Wait()
		if !rig.IsShut(h.Lost()) {
			x.T.Error("the holder has not heard of a ForceUnlock")
		}
	},
}

// handsOver passes a lock from one process to another that waits.
func handsOver(x *rig.Lab, here, there *relock.Lock) {
	x.T.Helper()
	held := x.Take(here)
	waiter := x.Begin(there)
	waiter.Waits()
	rig.End(x.T, held)
	rig.End(x.T, waiter.Returns())
}

// Fails when a script says another channel than the one that the client hears: then only the heartbeat,
// seconds later, finds the lock.
func TestWaitersUnderAnyPrefixAreWokenByMessage(t *testing.T) {
	for _, prefix := range []string{"", "tenant-7", "a:b", "é"} {
		for what, wakes := range wakeUps {
			for _, sharded := range []bool{false, true} {
				if sharded && what == "force" {
					continue // that message goes to who waits
				}
				t.Run(fmt.Sprintf("%s/%s/%v", prefix, what, sharded), func(t *testing.T) {
					rig.Run(t, func(t *testing.T, x *rig.Lab) {
						var opts []relock.Option
						if prefix != "" {
							opts = append(opts, relock.KeyPrefix(prefix))
						}
						if sharded {
							x.Server.Shard()
							opts = append(opts, relock.ShardedPubSub())
						}
						a, b := x.Client(opts...), x.Client(opts...)
						began := x.Now()
						wakes(x, a, b)
						if took := x.Now() - began; took > 0 {
							t.Errorf("it took %v, want none", took)
						}
					})
				})
			}
		}
	}
}

// The machine slept, so no timer of the client has seen that the hold's trust is over.
// Fails when Detach does not ask the clock.
func TestDetachRightAfterASuspensionIsLost(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		h := x.Take(x.Lock("a"))
		x.Suspend(31 * time.Second)
		ticket, err := h.Detach(t.Context(), time.Minute)
		rig.WantIs(t, err, relock.ErrLost)
		if ticket != "" {
			t.Error("a lost hold gave a ticket")
		}
		rig.WantIs(t, h.Err(), relock.ErrNotHeld)
		synctest.Wait()
		x.Frees("a")
	})
}

// Fails when a wait is longer than it was told, by any amount, or when one of no time keeps the lock: its holds would
// have the same token.
func TestWaitForEndsAtItsInstant(t *testing.T) {
	for _, limit := range []time.Duration{
		-time.Hour, -1, 0, 1, time.Microsecond, time.Millisecond, 7 * time.Millisecond, 99 * time.Millisecond,
		1500 * time.Millisecond, 31 * time.Second, time.Hour + 1,
	} {
		t.Run(limit.String(), func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				l := x.Lock("l")
				rig.Must(t, l.Lock(t.Context()))
				began, before := x.Now(), l.Token()
				signalled, err := l.NewCond("c").WaitFor(t.Context(), limit)
				if took := x.Now() - began; signalled || err != nil || took != max(limit, 0) {
					t.Errorf("WaitFor(%v) = %v, %v after %v", limit, signalled, err, took)
				}
				rig.WantLater(t, before, l.Token())
				rig.Must(t, l.Unlock())
			})
		})
	}
}

// Names that differ at one place only, near or far, are told apart by a token's last digits.
// Fails when the digits are of a part of the name.
func TestEveryByteOfAnOwnerIsInItsTokens(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		const length = 256
		digits := func(owner string) int64 {
			h, err := c.NewLock(fmt.Sprint(len(owner), x.Now())).Acquire(x.By(owner))
			rig.Must(t, err)
			defer rig.End(t, h)
			return h.Token() % 1000
		}
		same := strings.Repeat("a", length)
		want := digits(same)
		for _, at := range []int{0, 1, 15, 16, 17, 31, 32, 63, 64, 127, 128, 200, length - 1} {
			if other := same[:at] + "b" + same[at+1:]; digits(other) == want {
				t.Errorf("a name that differs at byte %d has the same digits %d", at, want)
			}
		}
		if digits(same[:length-1]) == want {
			t.Error("a name that is shorter by one byte has the same digits")
		}
	})
}

// The labels of several hundred holders take several scripts, none of which is answered.
// Fails when each is waited for by itself.
func TestLabelsHoldUpInfoForASecondInAll(t *testing.T) {
	const holders = 300 // more than two scripts' worth
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		for range holders {
			rig.Must(t, x.Client().NewSemaphore("gpu", holders).Lock(t.Context()))
		}
		eye, link := x.Linked()
		scripts := 0
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if rig.Runs(cmd, "labels") {
				scripts++
				return redistest.Lose
			}
			return redistest.Pass
		})
		began := x.Now()
		info, err := eye.NewSemaphore("gpu", holders).Info(t.Context())
		rig.Must(t, err)
		if took := x.Now() - began; took > 1100*time.Millisecond || len(info.Holders) != holders {
			t.Errorf("Info took %v and tells %d holders", took, len(info.Holders))
		}
		if scripts == 0 {
			t.Error("no label was asked for")
		}
	})
}

// More waiters have died than one script looks at, and one that lives stands behind them.
// Fails when a newcomer is let in for want of time to look at the queue.
func TestTryLockDoesNotOvertakeALiveWaiterBehindManyDead(t *testing.T) {
	for _, dead := range []int{250, 600} {
		t.Run(fmt.Sprint(dead), func(t *testing.T) {
			rig.Play(t, func(t *testing.T, x *rig.Lab) {
				live := x.Actor()
				heard := x.Listen(live)
				raw := rig.Raw{T: t, Redis: x.Redis, ID: rig.ID(live.Client)}
				x.Take(x.Lock("l", relock.TTL(5*time.Second), relock.NoWatchdog()))
				for i := range dead {
					raw.Ask(fmt.Sprintf("%022d", i), fmt.Sprint("~", i), 5*time.Second, 1, 0)
				}
				raw.Ask(rig.NonceOf('L'), "~live", time.Minute, 1, 0)
				virtual.Sleep(6 * time.Second)
				if got, err := x.Lock("l").TryLock(t.Context(), 0); got || err != nil {
					t.Errorf("TryLock = %v, %v, want false: a live waiter comes first", got, err)
				}
				if all := strings.Join(heard(), "\n"); !strings.Contains(all, "grant "+rig.NonceOf('L')) {
					t.Errorf("the waiter that lives was told %q, want its grant", all)
				}
			})
		})
	}
}
