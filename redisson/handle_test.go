package redisson_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/redisson"
)

// An entry of nobody would hold up all others for minutes. Fails in one of some hundred runs when the client closes
// between the end of a call and the release of its place.
func TestTheEndOfAClientLeavesTheQueueOfASharedLock(t *testing.T) {
	for name, end := range map[string]func(ctx context.Context, c *redisson.Client) error{
		"Close":    func(_ context.Context, c *redisson.Client) error { return c.Close() },
		"Shutdown": func(ctx context.Context, c *redisson.Client) error { return c.Shutdown(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				holder, other := client(t, x).NewLock("a", redisson.Fair()), client(t, x)
				rig.Must(t, holder.Lock(t.Context()))
				call := rig.Beside(func() error { return other.NewLock("a", redisson.Fair()).Lock(t.Context()) })
				synctest.Wait()
				rig.Must(t, end(t.Context(), other))
				rig.WantIs(t, <-call, relock.ErrClosed)
				if info, err := holder.Info(t.Context()); err != nil || info.Waiters != 0 {
					t.Errorf("%+v, %v: want nobody in the queue", info, err)
				}
				rig.Must(t, holder.Unlock())
				bare(t, x)
			})
		})
	}
}

func TestCloseLosesHoldsAndShutdownWaitsForThem(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		a := client(t, x)
		b, link := linked(t, x)
		h, err := a.NewLock("a").Acquire(t.Context())
		rig.Must(t, err)
		rig.Must(t, a.Close())
		rig.WantIs(t, h.Err(), relock.ErrLost, relock.ErrClosed)
		rig.WantIs(t, h.Release(), relock.ErrLost)
		rig.WantIs(t, a.NewLock("b").Lock(t.Context()), relock.ErrClosed)
		l := b.NewLock("b")
		rig.Must(t, l.Lock(t.Context()))
		done := rig.Beside(func() error { return b.Shutdown(t.Context()) })
		virtual.Sleep(time.Minute)
		done.Pending(t, "Shutdown with a hold")
		link.Latency(100 * time.Millisecond)
		rig.Must(t, l.Unlock())
		rig.Must(t, <-done)
		virtual.Sleep(30 * time.Second)
		bare(t, x)
	})
}

// heldUp returns a call for a free lock whose request has no answer until answer is called.
func heldUp(t *testing.T, x *rig.Lab) (c *redisson.Client, l *redisson.Lock, call rig.Going, answer func()) {
	t.Helper()
	c, link := linked(t, x)
	l, gate := c.NewLock("a"), make(chan struct{})
	rig.Must(t, l.Lock(t.Context()))
	rig.Must(t, l.Unlock())
	link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
		if cmd.Is("evalsha") {
			return redistest.Hold(gate)
		}
		return redistest.Pass
	})
	call = rig.Beside(func() error { return l.Lock(t.Context()) })
	call.Pending(t, "the call")
	return c, l, call, func() { close(gate) }
}

// TestACallOfRedissonInFlightAtCloseGetsNoHold is answered after Close has gone on.
func TestACallOfRedissonInFlightAtCloseGetsNoHold(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, l, call, answer := heldUp(t, x)
		closing := rig.Beside(c.Close)
		virtual.Sleep(time.Second)
		answer()
		rig.Must(t, <-closing)
		rig.WantIs(t, <-call, relock.ErrClosed)
		if l.HoldCount() != 0 {
			t.Error("held after Close")
		}
		virtual.Sleep(30 * time.Second)
		bare(t, x)
	})
}

// Fails when a grant that is answered while Close waits stays in Redis until its lease ends.
func TestAGrantToACallThatCloseEndsIsGivenBack(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, _, call, answer := heldUp(t, x)
		closing := rig.Beside(c.Close)
		closing.Pending(t, "Close")
		answer()
		rig.WantIs(t, <-call, relock.ErrClosed)
		rig.Must(t, <-closing)
		bare(t, x)
	})
}

func TestShutdownLetsTheOwnerOfASharedLockEnterAgain(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := client(t, x)
		l, ctx := c.NewLock("a"), relock.WithNewOwner(t.Context())
		rig.Must(t, l.Lock(ctx))
		done := rig.Beside(func() error { return c.Shutdown(t.Context()) })
		virtual.Sleep(time.Minute)
		rig.WantIs(t, c.NewLock("b").Lock(ctx), relock.ErrClosed)
		rig.Must(t, l.Lock(ctx))
		rig.Must(t, l.Unlock())
		done.Pending(t, "Shutdown with the outer hold")
		rig.Must(t, l.Unlock())
		rig.Must(t, <-done)
		bare(t, x)
	})
}

// TestContextsEndWithTheHold that made them, with its loss as the cause.
func TestContextsEndWithTheHoldOfASharedLock(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := client(t, x).NewLock("a", redisson.TTL(time.Second), redisson.NoWatchdog())
		err := l.Do(t.Context(), func(ctx context.Context) error {
			rig.WantIs(t, l.Lock(ctx), relock.ErrDeadlock)
			<-ctx.Done()
			rig.WantIs(t, context.Cause(ctx), relock.ErrLost)
			return nil
		})
		rig.WantIs(t, err, relock.ErrLost)
		rig.Must(t, l.Do(t.Context(), func(ctx context.Context) error { return ctx.Err() }))
	})
}

// Fails when the release of a lost hold hides the loss from the contexts that are made of it afterwards.
func TestALossIsTheCauseOfContextsThoughASharedLockWasReleasedSince(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		h, err := client(t, x).NewLock("a", redisson.TTL(time.Second), redisson.NoWatchdog()).Acquire(t.Context())
		rig.Must(t, err)
		virtual.Sleep(2 * time.Second)
		rig.WantIs(t, h.Release(), relock.ErrLost)
		rig.WantIs(t, context.Cause(h.Context(t.Context())), relock.ErrLost)
	})
}

// TestALostHoldOccupiesItsHandle until its Unlock.
func TestALostHoldOfASharedLockOccupiesItsHandle(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := client(t, x).NewLock("a", redisson.TTL(time.Second), redisson.NoWatchdog())
		rig.Must(t, l.Lock(x.By("me")))
		virtual.Sleep(2 * time.Second)
		if l.HoldCount() != 0 {
			t.Error("a lost hold counts")
		}
		rig.WantIs(t, l.Lock(x.By("me")), relock.ErrLost)
		rig.WantIs(t, l.Lock(canceledSoon(t)), relock.ErrLost, context.DeadlineExceeded)
		other := rig.Beside(func() error { return l.Lock(t.Context()) })
		virtual.Sleep(time.Second)
		other.Pending(t, "Lock on a handle with a lost hold")
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
		rig.Must(t, <-other)
		rig.Must(t, l.Unlock())
	})
}

// TestAClosedClientLetsNobodyWaitForALostHold: what Close has lost occupies the handle, and
// may never be unlocked.
func TestAClosedClientLetsNobodyWaitForALostHold(t *testing.T) {
	ends := map[string]func(ctx context.Context, c *redisson.Client) error{
		"Close":    func(_ context.Context, c *redisson.Client) error { return c.Close() },
		"Shutdown": func(ctx context.Context, c *redisson.Client) error { return c.Shutdown(ctx) },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				c := client(t, x)
				l := c.NewLock("a", redisson.TTL(time.Second), redisson.NoWatchdog())
				rig.Must(t, l.Lock(t.Context()))
				virtual.Sleep(2 * time.Second)
				before := rig.Beside(func() error { return l.Lock(t.Context()) })
				synctest.Wait()
				before.Pending(t, "Lock on a handle with a lost hold")
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_ = end(ctx, c) // a Shutdown would wait for the hold
				rig.WantIs(t, rig.Returned(t, before), relock.ErrClosed)
				after := rig.Beside(func() error { return l.Lock(t.Context()) })
				rig.WantIs(t, rig.Returned(t, after), relock.ErrClosed)
				rig.WantIs(t, l.Unlock(), relock.ErrLost)
			})
		})
	}
}

// TestDoInDoOfASharedLock under one owner, and a loss that a nested call finds.
func TestDoInDoOfASharedLock(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := client(t, x).NewLock("a")
		rig.Must(t, l.Do(x.By("me"), func(ctx context.Context) error {
			return l.Do(ctx, func(ctx context.Context) error { return ctx.Err() })
		}))
		err := l.Do(x.By("me"), func(ctx context.Context) error {
			x.Redis.Del(ctx, "a")
			rig.WantIs(t, l.Do(ctx, func(context.Context) error { return nil }), relock.ErrLost)
			rig.WantIs(t, context.Cause(ctx), relock.ErrLost)
			return nil
		})
		rig.WantIs(t, err, relock.ErrLost)
		bare(t, x)
	})
}

// TestAnAnswerAfterTheLeaseGivesNoHold, and one attempt does not say that the lock is taken.
func TestAnAnswerAfterTheLeaseGivesNoHold(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := linked(t, x)
		rig.Must(t, c.NewLock("a").Do(t.Context(), func(context.Context) error { return nil })) // the link is up
		link.Latency(60 * time.Millisecond)
		l := c.NewLock("a", redisson.TTL(100*time.Millisecond))
		if ok, err := l.TryLock(t.Context(), 0); ok || err == nil {
			t.Errorf("TryLock = %v, %v, want an error", ok, err)
		}
		virtual.Sleep(10 * time.Second)
		bare(t, x)
	})
}

func TestMaxHoldEndsRenewalOfASharedLock(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		h, err := client(t, x).NewLock("a", redisson.MaxHold(time.Minute)).Acquire(t.Context())
		rig.Must(t, err)
		<-h.Lost()
		if at := x.Now(); at < time.Minute || at > 90*time.Second {
			t.Errorf("lost after %v", at)
		}
		_ = h.Release()
		virtual.Sleep(30 * time.Second)
		bare(t, x)
	})
}

func TestBadInputOfASharedLockIsRefused(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, ctx := client(t, x), t.Context()
		for what, err := range map[error]error{
			relock.ErrInvalidName:   errors.Join(c.NewLock("").Lock(ctx), c.NewLock("a{").Lock(ctx), c.NewLock("a{}").Lock(ctx)),
			relock.ErrInvalidOption: errors.Join(c.NewLock("a", redisson.Fair(), redisson.Fenced()).Lock(ctx), c.NewRWLock("a", redisson.Fair()).RLock(ctx), c.NewLock("a", redisson.TTL(time.Microsecond)).Lock(ctx), c.NewLock("a", nil).Lock(ctx), (&redisson.Lock{}).Lock(ctx), (*redisson.Client)(nil).NewLock("a").Lock(ctx)),
			relock.ErrOwnerMismatch: c.NewLock("a", redisson.Owner("you")).Lock(x.By("me")),
			relock.ErrNotHeld:       c.NewLock("a").Unlock(),
		} {
			all, _ := err.(interface{ Unwrap() []error })
			if all == nil {
				rig.WantIs(t, err, what)
				continue
			}
			for _, one := range all.Unwrap() {
				rig.WantIs(t, one, what)
			}
		}
		if _, err := redisson.New(nil); !errors.Is(err, relock.ErrInvalidOption) {
			t.Errorf("New(nil) = %v", err)
		}
		for what, opt := range map[string]redisson.Option{
			"a nil Option": nil, "Defaults(nil)": redisson.Defaults(nil),
			"Defaults(Owner)": redisson.Defaults(redisson.Owner("me")),
		} {
			if _, err := redisson.New(x.Redis, opt); !errors.Is(err, relock.ErrInvalidOption) {
				t.Errorf("New with %s = %v", what, err)
			}
		}
		rig.WantIs(t, (&redisson.Lock{}).Unlock(), relock.ErrInvalidOption)
		bare(t, x)
	})
}

// TestReadWriteLocksRefuseTheFairAndFencedOfDefaults, in every call: Redisson has no such locks. Other locks of the
// client have what the Defaults say.
// Fails when a read/write lock leaves them out without a word.
func TestReadWriteLocksRefuseTheFairAndFencedOfDefaults(t *testing.T) {
	for kind, opt := range map[string]redisson.LockOption{"fair lock": redisson.Fair(), "fenced lock": redisson.Fenced()} {
		t.Run(kind, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				c := client(t, x, redisson.Defaults(opt))
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				rw := c.NewRWLock("a")
				_, try := rw.TryLock(ctx, 0)
				_, tryR := rw.TryRLock(ctx, 0)
				_, info := rw.RLocker().Info(ctx)
				_, force := rw.WLocker().ForceUnlock(ctx)
				for call, err := range map[string]error{
					"Lock": rw.Lock(ctx), "RLock": rw.RLock(ctx), "TryLock": try, "TryRLock": tryR, "Unlock": rw.Unlock(), "RUnlock": rw.RUnlock(),
					"Downgrade": rw.Downgrade(ctx), "Info": info, "ForceUnlock": force,
				} {
					if !errors.Is(err, relock.ErrInvalidOption) {
						t.Errorf("%s = %v, want ErrInvalidOption", call, err)
					}
				}
				l := c.NewLock("a")
				rig.Must(t, l.Lock(ctx))
				if info, err := l.Info(ctx); err != nil || info.Kind != kind {
					t.Errorf("Info = %+v, %v, want a %s", info, err, kind)
				}
				rig.Must(t, l.Unlock())
				x.Redis.Del(ctx, "redisson_lock_token:{a}")
				bare(t, x)
			})
		})
	}
}

// Fails when a call on either side of a read/write lock that cannot be has another error, or goes on.
func TestEveryCallOfABadSharedReadWriteLockSaysSo(t *testing.T) {
	for what, bad := range map[string]struct {
		name string
		opt  redisson.LockOption
		want error
	}{
		"no name":       {"", redisson.TTL(time.Minute), relock.ErrInvalidName},
		"half a tag":    {"a{", redisson.TTL(time.Minute), relock.ErrInvalidName},
		"fair":          {"a", redisson.Fair(), relock.ErrInvalidOption},
		"fenced":        {"a", redisson.Fenced(), relock.ErrInvalidOption},
		"no option":     {"a", nil, relock.ErrInvalidOption},
		"a short lease": {"a", redisson.TTL(time.Millisecond), relock.ErrInvalidOption},
		"a long lease":  {"a", redisson.TTL(25 * time.Hour), relock.ErrInvalidOption},
		"no time":       {"a", redisson.MaxHold(0), relock.ErrInvalidOption},
		"no owner":      {"a", redisson.Owner(""), relock.ErrInvalidOption},
	} {
		t.Run(what, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				rw := client(t, x).NewRWLock(bad.name, bad.opt)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, try := rw.TryLock(ctx, 0)
				_, tryR := rw.TryRLock(ctx, 0)
				calls := map[string]error{
					"Lock": rw.Lock(ctx), "RLock": rw.RLock(ctx), "TryLock": try, "TryRLock": tryR,
					"Unlock": rw.Unlock(), "RUnlock": rw.RUnlock(), "Downgrade": rw.Downgrade(ctx),
				}
				for side, l := range map[string]*redisson.Lock{"writing": rw.WLocker(), "reading": rw.RLocker()} {
					_, calls[side+" Acquire"] = l.Acquire(ctx)
					_, calls[side+" TryAcquire"] = l.TryAcquire(ctx, time.Second)
					calls[side+" Do"] = l.Do(ctx, func(context.Context) error { return nil })
					_, calls[side+" Info"] = l.Info(ctx)
					_, calls[side+" ForceUnlock"] = l.ForceUnlock(ctx)
					_, calls[side+" ForceUnlockHolder"] = l.ForceUnlockHolder(ctx, relock.Holder{Owner: "x"})
				}
				for call, err := range calls {
					if !errors.Is(err, bad.want) {
						t.Errorf("%s = %v, want %v", call, err, bad.want)
					}
				}
				bare(t, x)
			})
		})
	}
}
