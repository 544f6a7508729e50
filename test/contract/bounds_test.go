package contract_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// bounded are the durations that options and calls take, with the bounds that their documentation names.
// give is whether one is taken.
var bounded = map[string]struct {
	least, most time.Duration
	give        func(t *testing.T, c *relock.Client, d time.Duration) error
}{
	"TTL": {100 * time.Millisecond, 24 * time.Hour, perLock(relock.TTL)},
	"TTL of Defaults": {100 * time.Millisecond, 24 * time.Hour, perClient(func(d time.Duration) relock.Option {
		return relock.Defaults(relock.TTL(d))
	})},
	"MaxHold": {time.Millisecond, 10 * 365 * 24 * time.Hour, perLock(relock.MaxHold)},
	"MaxHold of Defaults": {time.Millisecond, 10 * 365 * 24 * time.Hour, perClient(func(d time.Duration) relock.Option {
		return relock.Defaults(relock.MaxHold(d))
	})},
	"AtLeast":        {time.Millisecond, 366 * 24 * time.Hour, perLock(relock.AtLeast)},
	"ReleaseTimeout": {time.Millisecond, time.Hour, perClient(relock.ReleaseTimeout)},
	"TokenKeep":      {time.Minute, 24 * time.Hour, perClient(relock.TokenKeep)},
	"Once": {time.Millisecond, 366 * 24 * time.Hour, func(t *testing.T, c *relock.Client, d time.Duration) error {
		_, err := c.Once(t.Context(), "once "+d.String(), d, func(context.Context) error { return relock.ErrUnspent })
		if err != nil && !strings.Contains(err.Error(), "allowed are") {
			return nil // what fn has returned
		}
		return err
	}},
	"Detach": {time.Millisecond, 24 * time.Hour, func(t *testing.T, c *relock.Client, d time.Duration) error {
		h := rig.MustAcquire(t, c.NewLock("detach "+d.String()))
		_, err := h.Detach(t.Context(), d)
		if err != nil {
			rig.End(t, h)
		}
		return err
	}},
}

func perLock(option func(time.Duration) relock.LockOption) func(*testing.T, *relock.Client, time.Duration) error {
	return func(t *testing.T, c *relock.Client, d time.Duration) error {
		got, err := c.NewLock("lock "+d.String(), option(d)).TryLock(t.Context(), 0)
		if err == nil && !got {
			t.Errorf("a lock with %v was not taken", d)
		}
		return err
	}
}

func perClient(option func(time.Duration) relock.Option) func(*testing.T, *relock.Client, time.Duration) error {
	return func(t *testing.T, _ *relock.Client, d time.Duration) error {
		rdb := redis.NewClient(&redis.Options{Addr: "192.0.2.1:6379"})
		defer func() { _ = rdb.Close() }()
		c, err := relock.New(rdb, option(d))
		if err == nil {
			rig.Must(t, c.Close())
		}
		return err
	}
}

// Fails when a bound is another than the documentation says, to either side.
func TestDurationsHaveTheBoundsThatAreDocumented(t *testing.T) {
	for name, of := range bounded {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				c := x.Client()
				for _, d := range []time.Duration{of.least, of.most, of.least + time.Millisecond, of.most - time.Millisecond} {
					if err := of.give(t, c, d); err != nil {
						t.Errorf("%v is refused: %v", d, err)
					}
				}
				for _, d := range []time.Duration{of.least - time.Millisecond, of.most + time.Millisecond, of.least + 1, 0, -of.least} {
					rig.WantIs(t, of.give(t, c, d), relock.ErrInvalidOption)
				}
			})
		})
	}
}

// bothWays runs f with a lock that has an option of its own, and with one that has it from its client.
func bothWays(t *testing.T, opts []relock.LockOption, f func(t *testing.T, x *rig.Lab, c *relock.Client, l *relock.Lock)) {
	t.Helper()
	for _, way := range []string{"lock", "client"} {
		t.Run(way, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				c, own := x.Client(), opts
				if way == "client" {
					c, own = x.Client(relock.Defaults(opts...)), nil
				}
				f(t, x, c, c.NewLock("a", own...))
			})
		})
	}
}

// holdsFor fails the test unless a hold that nobody releases is held until about then.
func holdsFor(t *testing.T, l *relock.Lock, atLeast, atMost time.Duration) {
	t.Helper()
	lastsFor(t, rig.MustAcquire(t, l), atLeast, atMost)
}

// lastsFor is holdsFor for a hold that begins now.
func lastsFor(t *testing.T, h *relock.Hold, atLeast, atMost time.Duration) {
	t.Helper()
	began := time.Now()
	select {
	case <-h.Lost():
		if took := time.Since(began); took < atLeast || took > atMost {
			t.Errorf("lost after %v, want %v to %v", took, atLeast, atMost)
		}
	case <-time.After(atMost + time.Second):
		t.Errorf("not lost after %v", atMost)
	}
	rig.WantIs(t, h.Release(), relock.ErrLost)
}

// Fails when an option is lost on the way from Defaults, or of a handle.
func TestEveryLockOptionWorksPerLockAndPerClient(t *testing.T) {
	t.Run("TTL", func(t *testing.T) {
		bothWays(t, []relock.LockOption{relock.TTL(7 * time.Second)}, func(t *testing.T, x *rig.Lab, _ *relock.Client, l *relock.Lock) {
			h := rig.MustAcquire(t, l)
			if ttl := holder(x, "a").TTL; ttl != 7*time.Second {
				t.Errorf("the lease is %v, want 7 s", ttl)
			}
			rig.End(t, h)
		})
	})
	t.Run("NoWatchdog", func(t *testing.T) {
		bothWays(t, []relock.LockOption{relock.TTL(7 * time.Second), relock.NoWatchdog()}, func(t *testing.T, _ *rig.Lab, _ *relock.Client, l *relock.Lock) {
			holdsFor(t, l, 6*time.Second, 7*time.Second)
		})
	})
	t.Run("MaxHold", func(t *testing.T) {
		bothWays(t, []relock.LockOption{relock.TTL(3 * time.Second), relock.MaxHold(20 * time.Second)}, func(t *testing.T, _ *rig.Lab, _ *relock.Client, l *relock.Lock) {
			holdsFor(t, l, 20*time.Second, 23*time.Second)
		})
	})
	t.Run("Fair", func(t *testing.T) {
		bothWays(t, []relock.LockOption{relock.Fair()}, func(t *testing.T, x *rig.Lab, _ *relock.Client, l *relock.Lock) {
			h := rig.MustAcquire(t, l)
			if kind := x.Info(l).Kind; !strings.Contains(kind, "fair") {
				t.Errorf("the lock is a %q, want a fair one", kind)
			}
			rig.End(t, h)
		})
	})
	t.Run("LocalReentry", func(t *testing.T) {
		bothWays(t, []relock.LockOption{relock.LocalReentry()}, func(t *testing.T, x *rig.Lab, _ *relock.Client, l *relock.Lock) {
			rig.Must(t, l.Lock(x.By("me")))
			rig.Must(t, l.Lock(x.By("me")))
			x.Holders(l, "me", 1) // Redis counts outer holds only
			rig.Must(t, l.Unlock())
			rig.Must(t, l.Unlock())
		})
	})
}

// Fails when Name is what the library makes of a name.
func TestNameIsWhatWasGiven(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		q, _ := newPrimaries(x, 3).process()
		for _, name := range []string{"a", "{a}", "{a}b", " a ", "A", "é", "a:b/c", strings.Repeat("x", 200)} {
			h := rig.MustAcquire(t, c.NewLock(name))
			rw := c.NewRWLock(name)
			for what, got := range map[string]string{
				"Lock": c.NewLock(name).Name(), "RLocker": rw.RLocker().Name(), "WLocker": rw.WLocker().Name(),
				"Semaphore": c.NewSemaphore(name, 1).Name(), "QuorumLock": q.NewLock(name).Name(), "Hold": h.Name(), "Info": x.Info(c.NewLock(name)).Name,
			} {
				if got != name {
					t.Errorf("%s of %q has the name %q", what, name, got)
				}
			}
			rig.End(t, h)
		}
	})
}

// Fails when only some of a quorum's primaries have what the handle asks for.
func TestOptionsOfAQuorumLockHoldOnEveryPrimary(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := newPrimaries(x, 3)
		h, err := p.lock("a", relock.TTL(7*time.Second), relock.Owner("me")).Acquire(t.Context())
		rig.Must(t, err)
		virtual.Sleep(time.Second) // also of a primary that was not needed for the majority
		for i, srv := range p.all {
			info := x.Info(x.ClientOver(srv.Client(t)).NewLock("a"))
			if len(info.Holders) != 1 || info.Holders[0].TTL > 7*time.Second || info.Holders[0].TTL < 4*time.Second || info.Holders[0].Owner != "me" {
				t.Errorf("primary %d has %+v, want a lease of 7 s of me", i, info.Holders)
			}
		}
		rig.Must(t, h.Release())
	})
}

// Fails when those who wait on a condition are counted with those who wait for the lock.
func TestInfoCountsWhoWaitsForTheLockOnly(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := parties(x, 3)
		p[0].sleeps(x)
		rig.Must(t, p[1].l.Lock(t.Context()))
		waiter := x.Begin(p[2].l)
		waiter.Waits()
		if n := x.Info(p[1].l).Waiters; n != 1 {
			t.Errorf("%d waiters, want the one that waits for the lock", n)
		}
		rig.Must(t, p[1].l.Unlock())
		rig.End(t, waiter.Holds())
	})
}
