package contract_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

const stickyIdle = 2 * time.Second

// A stickyLock is a handle of the lock "l" that may be kept, and how to call it.
type stickyLock struct {
	lock *relock.Lock
	ctx  context.Context
	opts []relock.LockOption // of the lock, without Sticky
}

func (l stickyLock) take(t *testing.T) *relock.Hold {
	t.Helper()
	h, err := l.lock.Acquire(l.ctx)
	rig.Must(t, err)
	return h
}

// kept takes and releases the lock twice: a name's first grant has one token, and is not kept.
func (l stickyLock) kept(t *testing.T) (token int64) {
	t.Helper()
	for range 2 {
		h := l.take(t)
		token = h.Token()
		rig.End(t, h)
		virtual.Sleep(20 * time.Millisecond) // so that the next grant has all its tokens
		synctest.Wait()
	}
	return token
}

// eachSticky runs f for each way to take a lock that may be kept. a has the lock, b is another process.
func eachSticky(t *testing.T, f func(t *testing.T, s *rig.Lab, a, b *rig.Actor, l stickyLock, other *relock.Lock), opts ...relock.Option) {
	t.Helper()
	for kind, more := range map[string][]relock.LockOption{"plain": nil, "fair": {relock.Fair()}, "local": {relock.LocalReentry()}} {
		t.Run(kind, func(t *testing.T) {
			rig.Play(t, func(t *testing.T, s *rig.Lab) {
				if len(opts) > 0 {
					s.Server.Shard()
				}
				a, b := s.Actor(opts...), s.Actor(opts...)
				s.WaitOnce(b)
				l := stickyLock{a.NewLock("l", append([]relock.LockOption{relock.Sticky(stickyIdle)}, more...)...), t.Context(), more}
				f(t, s, a, b, l, b.NewLock("l", more...))
			})
		})
	}
}

// commandsOf counts what a process has sent about the lock.
func commandsOf(a *rig.Actor) (n int) {
	for _, args := range a.Link.Log() {
		if slices.Contains(args, "relock:h:{l}") {
			n++
		}
	}
	return n
}

func TestAKeptLockIsTakenAgainWithoutACommand(t *testing.T) {
	eachSticky(t, func(t *testing.T, s *rig.Lab, a, _ *rig.Actor, l stickyLock, other *relock.Lock) {
		last := l.kept(t)
		before := commandsOf(a)
		for i := range 100 {
			h := l.take(t)
			rig.WantLater(t, last, h.Token())
			last = h.Token()
			rig.Must(t, h.Err())
			if i%10 == 0 {
				rig.RefusesAny(s, other)
			}
			rig.End(t, h)
			rig.WantIs(t, h.Release(), relock.ErrNotHeld)
			rig.RefusesAny(s, other)
		}
		if n := commandsOf(a) - before; n != 0 {
			t.Errorf("%d commands for 100 holds", n)
		}
		info, err := other.Info(t.Context())
		rig.Must(t, err)
		if len(info.Holders) != 1 || !info.Holders[0].Sticky {
			t.Errorf("Info = %+v, want a holder that is sticky", info)
		}
	})
}

func TestAKeptLockIsFreeWhenItsTimeIsOver(t *testing.T) {
	eachSticky(t, func(t *testing.T, s *rig.Lab, a, _ *rig.Actor, l stickyLock, other *relock.Lock) {
		l.kept(t)
		rig.End(t, l.take(t))
		before := commandsOf(a)
		s.Until(s.Now() + stickyIdle - time.Millisecond)
		rig.RefusesAny(s, other)
		if n := commandsOf(a) - before; n != 0 {
			t.Errorf("%d commands while the lock was kept", n)
		}
		s.Until(s.Now() + time.Millisecond)
		got, err := other.TryLock(t.Context(), 0)
		if rig.Must(t, err); !got {
			t.Error("taken after its time")
		}
		rig.Must(t, other.Unlock())
		if n := rig.Sessions(a.Client); n != 0 {
			t.Errorf("%d sessions are left", n)
		}
	})
}

// No virtual time passes.
func TestAKeptLockGoesToWhoWaits(t *testing.T) {
	for name, opts := range map[string][]relock.Option{"inbox": nil, "sharded": {relock.ShardedPubSub()}} {
		t.Run(name, func(t *testing.T) {
			eachSticky(t, func(t *testing.T, s *rig.Lab, _, _ *rig.Actor, l stickyLock, other *relock.Lock) {
				token, began := l.kept(t), s.Now()
				h := s.Begin(other).Returns()
				rig.WantLater(t, token, h.Token())
				if took := s.Now() - began; took > 0 {
					t.Errorf("the waiter got the lock after %v", took)
				}
				rig.End(t, h)
			}, opts...)
		})
	}
}

func TestAHoldThatIsWantedIsNotKept(t *testing.T) {
	eachSticky(t, func(t *testing.T, s *rig.Lab, _, _ *rig.Actor, l stickyLock, other *relock.Lock) {
		l.kept(t)
		h := l.take(t)
		waiter := s.Begin(other)
		waiter.Waits()
		began := s.Now()
		rig.End(t, h)
		rig.End(t, waiter.Returns())
		if took := s.Now() - began; took > 0 {
			t.Errorf("the waiter got the lock after %v", took)
		}
	})
}

// The waiter's entry would be found only by the end of the time: that bounds its wait.
func TestALostMessageCostsAWaiterTheTimeOfTheKeptLockAtMost(t *testing.T) {
	eachSticky(t, func(t *testing.T, s *rig.Lab, a, _ *rig.Actor, l stickyLock, other *relock.Lock) {
		l.kept(t)
		rig.End(t, l.take(t))
		a.Link.HoleSubscribers()
		waiter, began := s.Begin(other), s.Now()
		waiter.Waits()
		h := waiter.Returns()
		if took := s.Now() - began; took > stickyIdle {
			t.Errorf("the waiter got the lock after %v", took)
		}
		rig.End(t, h)
	})
}

// A lock that is in use is renewed, and kept again after each renewal.
func TestAStickyLockIsRenewedWhileItIsUsed(t *testing.T) {
	eachSticky(t, func(t *testing.T, s *rig.Lab, a, _ *rig.Actor, l stickyLock, other *relock.Lock) {
		last := l.kept(t)
		before := commandsOf(a)
		for i := range 120 { // a minute, twice the TTL
			h := l.take(t)
			rig.WantLater(t, last, h.Token())
			last = h.Token()
			rig.Must(t, h.Err())
			rig.End(t, h)
			virtual.Sleep(500 * time.Millisecond)
			synctest.Wait()
			if i%10 == 0 {
				rig.RefusesAny(s, other)
			}
		}
		if n := commandsOf(a) - before; n != 5 {
			t.Errorf("%d commands in a minute, want 5 renewals", n)
		}
	})
}

// A hold is renewed on time, also if it takes a lock that is kept for longer than until then.
func TestAHoldOfAKeptGrantIsRenewedOnTime(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		l := stickyLock{lock: s.Actor().NewLock("l", relock.Sticky(10*time.Second)), ctx: t.Context()}
		rig.End(t, l.take(t))
		s.Until(s.Now() + 20*time.Millisecond)
		h := l.take(t)
		s.Until(s.Now() + 8*time.Second)
		rig.End(t, h) // kept for 8 s longer than until the renewal is due
		s.Until(s.Now() + time.Second)
		h = l.take(t)
		for range 60 {
			s.Until(s.Now() + time.Second)
			if left := time.Until(h.TrustedUntil()); left < 18*time.Second {
				t.Fatalf("%v are left of the lease", left)
			}
		}
		rig.End(t, h)
	})
}

// The machine sleeps while the lock is kept, for longer than the lease. No timer has fired when the next call comes.
func TestAKeptLockIsNotTrustedAfterAPause(t *testing.T) {
	for _, pause := range []time.Duration{stickyIdle, time.Minute} { // beyond the time for which it is kept, and beyond its lease
		eachSticky(t, func(t *testing.T, s *rig.Lab, a, _ *rig.Actor, l stickyLock, _ *relock.Lock) {
			last := l.kept(t)
			before := commandsOf(a)
			s.Suspend(pause)
			got, err := l.lock.TryLock(l.ctx, 0)
			if rig.Must(t, err); !got {
				t.Error("not granted again")
			}
			rig.WantLater(t, last, l.lock.Token())
			if n := commandsOf(a) - before; n == 0 {
				t.Error("Redis was not asked")
			}
			rig.Must(t, l.lock.Unlock())
		})
	}
}

func TestAKeptLockEndsWithItsClient(t *testing.T) {
	for name, end := range map[string]func(c *relock.Client) error{
		"Shutdown": func(c *relock.Client) error { return c.Shutdown(context.Background()) },
		"Close":    (*relock.Client).Close,
	} {
		t.Run(name, func(t *testing.T) {
			eachSticky(t, func(t *testing.T, s *rig.Lab, a, _ *rig.Actor, l stickyLock, other *relock.Lock) {
				l.kept(t)
				rig.End(t, l.take(t))
				began := s.Now()
				rig.Must(t, end(a.Client))
				if took := s.Now() - began; took > 0 {
					t.Errorf("took %v", took)
				}
				got, err := other.TryLock(t.Context(), 0)
				if rig.Must(t, err); !got {
					t.Error("still taken")
				}
				rig.Must(t, other.Unlock())
				rig.WantIs(t, l.lock.Lock(l.ctx), relock.ErrClosed)
			})
		})
	}
}

// A hold that ends during a Shutdown is released.
func TestAHoldIsNotKeptByAClientThatShutsDown(t *testing.T) {
	eachSticky(t, func(t *testing.T, s *rig.Lab, a, _ *rig.Actor, l stickyLock, other *relock.Lock) {
		l.kept(t)
		h := l.take(t)
		down := rig.Beside(func() error { return a.Shutdown(context.Background()) })
		down.Pending(t, "Shutdown")
		rig.End(t, h)
		rig.Must(t, rig.Returned(t, down))
		got, err := other.TryLock(t.Context(), 0)
		if rig.Must(t, err); !got {
			t.Error("still taken")
		}
		rig.Must(t, other.Unlock())
	})
}

// A named owner does not get a kept lock without Redis, and does not wait for it.
func TestAKeptLockIsGivenBackForAnotherOwnerOfItsClient(t *testing.T) {
	eachSticky(t, func(t *testing.T, s *rig.Lab, a, _ *rig.Actor, l stickyLock, other *relock.Lock) {
		token := l.kept(t)
		next := stickyLock{lock: l.lock, ctx: relock.WithOwner(t.Context(), "another")}.take(t)
		rig.WantLater(t, token, next.Token())
		if next.Owner() != "another" {
			t.Errorf("owner %q", next.Owner())
		}
		rig.RefusesAny(s, other)
		rig.End(t, next)
		l.kept(t)
		began := s.Now()
		before := commandsOf(a)
		rig.End(t, stickyLock{lock: a.NewLock("l", l.opts...), ctx: l.ctx}.take(t)) // on other terms
		if commandsOf(a) == before {
			t.Error("a call on other terms did not ask Redis")
		}
		if took := s.Now() - began; took > 0 {
			t.Errorf("took %v", took)
		}
	})
}

// Others could enter the grant of a named owner, and would get its first token.
func TestAHoldThatOthersMayEnterIsNotKept(t *testing.T) {
	for what, more := range map[string]relock.LockOption{"a named owner": relock.Owner("o"), "MaxHold": relock.MaxHold(time.Hour)} {
		for kind, opts := range map[string][]relock.LockOption{"plain": nil, "fair": {relock.Fair()}} {
			t.Run(what+", "+kind, func(t *testing.T) {
				rig.Play(t, func(t *testing.T, s *rig.Lab) {
					a, b := s.Actor(), s.Actor()
					l := stickyLock{lock: a.NewLock("l", append([]relock.LockOption{relock.Sticky(stickyIdle), more}, opts...)...), ctx: t.Context()}
					other := b.NewLock("l", opts...)
					for range 3 {
						l.kept(t)
						got, err := other.TryLock(t.Context(), 0)
						if rig.Must(t, err); !got {
							t.Fatal("still taken")
						}
						rig.Must(t, other.Unlock())
					}
				})
			})
		}
	}
}

// A lock that is used all the time is never idle. Its renewal says that somebody waits.
func TestALostMessageCostsAWaiterAThirdOfTheTTLAtMost(t *testing.T) {
	eachSticky(t, func(t *testing.T, s *rig.Lab, a, _ *rig.Actor, l stickyLock, other *relock.Lock) {
		l.kept(t)
		a.Link.HoleSubscribers()
		waiter := s.Begin(other)
		waiter.Waits()
		for range 105 {
			h, err := l.lock.TryAcquire(l.ctx, 0)
			if err != nil {
				rig.WantIs(t, err, relock.ErrNotAcquired)
				break
			}
			virtual.Sleep(50 * time.Millisecond)
			rig.End(t, h)
			virtual.Sleep(50 * time.Millisecond)
			synctest.Wait()
		}
		if !waiter.Settled() {
			t.Fatal("still waits")
		}
		rig.End(t, waiter.Holds())
	})
}

func TestAForcedUnlockEndsAKeptLock(t *testing.T) {
	eachSticky(t, func(t *testing.T, s *rig.Lab, _, b *rig.Actor, l stickyLock, other *relock.Lock) {
		token := l.kept(t)
		forced, err := other.ForceUnlock(t.Context())
		if rig.Must(t, err); !forced {
			t.Error("nothing was held")
		}
		synctest.Wait()
		got, err := other.TryLock(t.Context(), 0)
		if rig.Must(t, err); !got {
			t.Fatal("taken after ForceUnlock")
		}
		rig.Must(t, other.Unlock())
		h := l.take(t)
		rig.WantLater(t, token, h.Token())
		rig.End(t, h)
	})
}

// Nobody tells the client that its grant has ended. Its calls do not ask Redis before the next renewal.
func TestALossOfAKeptGrantIsFoundByTheNextRenewal(t *testing.T) {
	eachSticky(t, func(t *testing.T, s *rig.Lab, a, _ *rig.Actor, l stickyLock, other *relock.Lock) {
		token, began := l.kept(t), s.Now()
		a.Link.HoleSubscribers()
		_, err := other.ForceUnlock(t.Context())
		rig.Must(t, err)
		next, err := other.TryAcquire(t.Context(), 0)
		rig.Must(t, err)
		h := l.take(t)
		rig.WantLater(t, token, h.Token(), next.Token()) // a resource that compares tokens refuses the first of them
		rig.Must(t, h.Release())
		h = l.take(t)
		<-h.Lost()
		if took := s.Now() - began; took > 10*time.Second {
			t.Errorf("lost after %v, want a third of the TTL at most", took)
		}
		rig.WantIs(t, h.Release(), relock.ErrLost)
		rig.End(t, next)
	})
}

// The hook panics, so the call does not return its hold.
func TestACallThatReturnsNoHoldKeepsNothing(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		upset := false
		a, b := s.Actor(relock.Trace(relock.Hooks{Acquired: func(context.Context, relock.Event) {
			if upset {
				panic("upset")
			}
		}})), s.Actor()
		l := stickyLock{lock: a.NewLock("l", relock.Sticky(stickyIdle)), ctx: t.Context()}
		l.kept(t)
		upset = true
		func() {
			defer func() { _ = recover() }()
			_ = l.lock.Lock(l.ctx)
		}()
		synctest.Wait()
		got, err := b.NewLock("l").TryLock(t.Context(), 0)
		if rig.Must(t, err); !got {
			t.Error("taken after the call")
		}
	})
}

// Signals move a waiter to the queue: the signaller's lock is wanted then.
func TestAKeptLockGoesToASignalledWaiter(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		l := stickyLock{lock: a.NewLock("l", relock.Sticky(stickyIdle)), ctx: t.Context()}
		theirs := b.NewLock("l")
		h := s.Take(theirs)
		wait := rig.Beside(func() error { return theirs.NewCond("c").Wait(t.Context()) })
		wait.Pending(t, "Wait")
		l.kept(t)
		rig.Must(t, l.lock.Lock(l.ctx))
		rig.Must(t, l.lock.NewCond("c").Signal(l.ctx))
		began := s.Now()
		rig.Must(t, l.lock.Unlock())
		rig.Must(t, rig.Returned(t, wait))
		if took := s.Now() - began; took > 0 {
			t.Errorf("took %v", took)
		}
		rig.End(t, h)
	})
}

func TestStickyIsRefusedWhereAGrantCannotBeKept(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		c, ctx := s.Client(), t.Context()
		sticky := relock.Sticky(time.Second)
		for what, err := range map[string]error{
			"0":         c.NewLock("l", relock.Sticky(0)).Lock(ctx),
			"a ns":      c.NewLock("l", relock.Sticky(1)).Lock(ctx),
			"too long":  c.NewLock("l", relock.Sticky(10*time.Second+time.Millisecond)).Lock(ctx),
			"a TTL":     c.NewLock("l", sticky, relock.TTL(time.Second)).Lock(ctx),
			"fixed":     c.NewLock("l", sticky, relock.NoWatchdog()).Lock(ctx),
			"rest":      c.NewLock("l", sticky, relock.AtLeast(time.Second)).Lock(ctx),
			"writer":    c.NewRWLock("l", sticky).Lock(ctx),
			"reader":    c.NewRWLock("l", sticky).RLock(ctx),
			"semaphore": c.NewSemaphore("l", 2, sticky).Lock(ctx),
			"election":  c.NewElection("l", sticky).Run(ctx, func(context.Context, relock.Term) error { return nil }),
			"once": func() error {
				_, err := c.Once(ctx, "l", time.Minute, func(context.Context) error { return nil }, sticky)
				return err
			}(),
			"defaults": func() error { _, err := relock.New(s.Redis, relock.Defaults(sticky)); return err }(),
		} {
			if rig.WantIs(t, err, relock.ErrInvalidOption); err == nil {
				t.Error(what)
			}
		}
		rig.Must(t, c.NewLock("l", relock.Sticky(10*time.Second)).Lock(ctx))
	})
}

// Two processes take turns. Each unlocks before the other asks, so the lock is kept and then wanted.
func TestTwoProcessesAlternateWithAStickyLock(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		s.WaitOnce(a, b)
		var last int64
		for i := range 50 {
			l := []*rig.Actor{a, b}[i%2].NewLock("l", relock.Sticky(stickyIdle))
			began := s.Now()
			h := s.Begin(l).Returns()
			if took := s.Now() - began; took > 0 {
				t.Errorf("round %d took %v", i, took)
			}
			rig.WantLater(t, last, h.Token())
			last = h.Token()
			rig.End(t, h)
			virtual.Sleep(20 * time.Millisecond) // so that the next grant has all its tokens
		}
	})
}

// A grant has 10,000 tokens. The next one has as many again, because as many us have passed.
func TestAKeptGrantEndsWithItsTokens(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		l := stickyLock{lock: a.NewLock("l", relock.Sticky(stickyIdle)), ctx: t.Context()}
		last := l.kept(t)
		before := commandsOf(a)
		for i := range 15_000 {
			h := l.take(t)
			rig.WantLater(t, last, h.Token())
			last = h.Token()
			rig.End(t, h)
			if i%10_000 == 0 {
				virtual.Sleep(20 * time.Millisecond)
			}
		}
		if n := commandsOf(a) - before; n != 2 {
			t.Errorf("%d commands for 15,000 holds, want 2", n)
		}
		s.Until(s.Now() + stickyIdle)
		h := s.Take(b.NewLock("l"))
		rig.WantLater(t, last, h.Token())
		rig.End(t, h)
	})
}

// The renewal is due while the lock is kept.
func TestAKeptGrantIsNotRenewed(t *testing.T) {
	eachSticky(t, func(t *testing.T, s *rig.Lab, a, _ *rig.Actor, l stickyLock, _ *relock.Lock) {
		l.kept(t)
		for range 9 {
			rig.End(t, l.take(t))
			s.Until(s.Now() + time.Second)
		}
		before := commandsOf(a)
		s.Until(s.Now() + stickyIdle - time.Second - time.Millisecond)
		if n := commandsOf(a) - before; n != 0 {
			t.Errorf("%d commands while the lock was kept", n)
		}
		rig.End(t, l.take(t))
		s.Until(s.Now() + stickyIdle - time.Millisecond)
		if n := commandsOf(a) - before; n != 1 {
			t.Errorf("%d commands, want the renewal of the last hold", n)
		}
	})
}

// A renewal is not answered. Whoever takes the kept lock again must have time for another one.
func TestAKeptGrantLeavesAThirdOfItsLease(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a := s.Actor()
		l := stickyLock{lock: a.NewLock("l", relock.Sticky(10*time.Second)), ctx: t.Context()}
		l.kept(t)
		granted := s.Now()
		h := l.take(t)
		s.Until(granted + 9900*time.Millisecond)
		heal := a.Link.Hole()
		s.Until(granted + 11500*time.Millisecond)
		rig.Must(t, h.Release())
		heal()
		s.Until(granted + 20500*time.Millisecond)
		h = l.take(t)
		if left := time.Until(h.TrustedUntil()); left < 10*time.Second {
			t.Errorf("%v are left of the lease", left)
		}
		rig.End(t, h)
	})
}

// Each call that took such a lock would renew it, without the pauses between tries.
func TestALockWhoseRenewalsFailIsNotKept(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		l := stickyLock{lock: a.NewLock("l", relock.Sticky(10*time.Second)), ctx: t.Context()}
		l.kept(t)
		granted := s.Now()
		h := l.take(t)
		s.Until(granted + 9900*time.Millisecond)
		a.Link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if rig.ScriptSent(cmd.Args) == "hold" {
				return redistest.Lose
			}
			return redistest.Pass
		})
		s.Until(granted + 12500*time.Millisecond) // a try takes 2 s
		rig.Must(t, h.Release())
		got, err := b.NewLock("l").TryLock(t.Context(), 0)
		if rig.Must(t, err); !got {
			t.Error("still taken")
		}
	})
}

func TestAStickyLockLeavesItsShardedChannel(t *testing.T) {
	eachSticky(t, func(t *testing.T, s *rig.Lab, a, _ *rig.Actor, l stickyLock, _ *relock.Lock) {
		l.kept(t)
		before := a.Link.Conns()
		s.Until(s.Now() + stickyIdle + time.Minute)
		if left := rig.Remains(a.Client); left != "" {
			t.Errorf("left: %s", left)
		}
		if a.Link.Conns() >= before { // the channel's connection is closed with it
			t.Error("the channel is still subscribed")
		}
	}, relock.ShardedPubSub())
}

// Calls of a process follow each other on the last tokens of a kept grant, while the server's clock stands still.
// Fails when they go on beyond these: the next grant would have the same tokens, or smaller ones.
func TestCallsThatFollowEachOtherEndWithTheTokensOfAKeptGrant(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		l := stickyLock{lock: a.NewLock("l", relock.Sticky(stickyIdle)), ctx: t.Context()}
		l.kept(t)
		s.Until(s.Now() + stickyIdle)
		before := commandsOf(a)
		for range 9_990 {
			rig.End(t, l.take(t))
		}
		if n := commandsOf(a) - before; n != 1 {
			t.Fatalf("%d commands, want one grant", n)
		}
		h := l.take(t)
		last := h.Token()
		var calls []*rig.Call
		for range 30 {
			calls = append(calls, s.Begin(l.lock))
		}
		rig.End(t, h)
		for _, c := range calls {
			h := c.Holds()
			rig.WantLater(t, last, h.Token())
			last = h.Token()
			rig.End(t, h)
		}
		next := s.Take(b.NewLock("l"))
		rig.WantLater(t, last, next.Token())
		rig.End(t, next)
	})
}

// The calls that had the lock in a run are in Redis' queue until its release, so no message tells of who comes behind.
func TestAFairLockIsNotKeptAfterARun(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		lock := a.NewLock("l", relock.Sticky(stickyIdle), relock.Fair())
		other := b.NewLock("l", relock.Fair())
		stickyLock{lock: lock, ctx: t.Context()}.kept(t)
		h := s.Take(other)
		calls := []*rig.Call{s.Begin(lock), s.Begin(lock)}
		for _, c := range calls {
			c.Waits()
		}
		virtual.Sleep(20 * time.Millisecond) // so that the next grant has tokens for a run
		before := commandsOf(a)
		rig.End(t, h)
		for _, c := range calls {
			rig.End(t, c.Holds())
		}
		if n := commandsOf(a) - before; n != 1 {
			t.Errorf("%d commands, want one release for the run", n)
		}
		began := s.Now()
		rig.End(t, s.Begin(other).Returns())
		if took := s.Now() - began; took > 0 {
			t.Errorf("the next waiter got the lock after %v", took)
		}
	})
}

// The machine has slept for more than two thirds of the lease. Redis is away, so the Unlock must say so.
func TestAGrantWithTooLittleLeaseIsReleasedByItsUnlock(t *testing.T) {
	eachSticky(t, func(t *testing.T, s *rig.Lab, a, _ *rig.Actor, l stickyLock, _ *relock.Lock) {
		l.kept(t)
		h := l.take(t)
		s.Suspend(25 * time.Second)
		heal := a.Link.Hole()
		rig.WantIs(t, h.Release(), relock.ErrUnconfirmed)
		heal()
	})
}

// The answer to a renewal sets the timer while a call holds. The timer must be set again when that call has ended.
func TestAGrantThatIsRenewedLateIsKeptForItsTimeOnly(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		l := stickyLock{lock: a.NewLock("l", relock.Sticky(stickyIdle)), ctx: t.Context()}
		l.kept(t)
		h := l.take(t)
		a.Link.Latency(300 * time.Millisecond)
		s.Until(s.Now() + 10*time.Second) // the renewal is under way
		rig.End(t, h)
		h = l.take(t)
		s.Until(s.Now() + time.Second)
		a.Link.Latency(0)
		rig.End(t, h)
		s.Until(s.Now() + stickyIdle)
		got, err := b.NewLock("l").TryLock(t.Context(), 0)
		if rig.Must(t, err); !got {
			t.Error("taken after its time")
		}
	})
}

// The kept grant was forced to end, and nobody told the client. Its Shutdown must not wait for that grant's time.
func TestAKeptGrantEndsAsAnotherIsKept(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		l := stickyLock{lock: a.NewLock("l", relock.Sticky(stickyIdle)), ctx: t.Context()}
		l.kept(t)
		h := l.take(t)
		gate := make(chan struct{})
		a.Fate("acquire", 1, redistest.Hold(gate))
		try := rig.Beside(func() error { _, err := l.lock.TryLock(l.ctx, 0); return err })
		try.Pending(t, "TryLock")
		a.Link.HoleSubscribers()
		rig.End(t, h)
		forced, err := b.NewLock("l").ForceUnlock(t.Context())
		if rig.Must(t, err); !forced {
			t.Error("nothing was kept")
		}
		close(gate)
		rig.Must(t, rig.Returned(t, try))
		rig.Must(t, l.lock.Unlock())
		began := s.Now()
		rig.Must(t, a.Shutdown(t.Context()))
		if took := s.Now() - began; took > 0 {
			t.Errorf("Shutdown waited %v for a grant that no call has", took)
		}
	})
}

// A process dies while it keeps the lock. Fails when others wait longer than for a holder that died.
func TestAKeptLockOfADeadProcessIsFreeAfterItsLease(t *testing.T) {
	eachSticky(t, func(t *testing.T, s *rig.Lab, a, _ *rig.Actor, l stickyLock, other *relock.Lock) {
		rig.End(t, l.take(t))
		s.Until(s.Now() + 20*time.Millisecond) // so that the next grant has all its tokens
		granted := s.Now()
		rig.End(t, l.take(t))
		a.Link.Cut()
		waiter := s.Begin(other)
		waiter.Waits()
		h := waiter.Returns()
		if took := s.Now() - granted; took < 29*time.Second || took > 30*time.Second+100*time.Millisecond {
			t.Errorf("the waiter got the lock %v after the grant, want the lease of 30s", took)
		}
		rig.End(t, h)
	})
}

// The grant comes so soon after another that it has fewer tokens than usual.
// Fails when others are not told that it may be kept.
func TestAKeptLockOfFewTokensIsShownAsSticky(t *testing.T) {
	eachSticky(t, func(t *testing.T, s *rig.Lab, _, _ *rig.Actor, l stickyLock, other *relock.Lock) {
		rig.End(t, l.take(t))
		s.Until(s.Now() + 2*time.Millisecond)
		rig.End(t, l.take(t))
		info := s.Info(other)
		if len(info.Holders) != 1 || !info.Holders[0].Sticky {
			t.Errorf("Info = %+v, want a holder that is sticky", info)
		}
	})
}
