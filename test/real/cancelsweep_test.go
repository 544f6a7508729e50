package real_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// manners are the ways to wait for a lock until ctx ends.
var manners = map[string]func(ctx context.Context, c *relock.Client) (*relock.Hold, error){
	"anonymous": func(ctx context.Context, c *relock.Client) (*relock.Hold, error) {
		return c.NewLock("job").Acquire(ctx)
	},
	"named": func(ctx context.Context, c *relock.Client) (*relock.Hold, error) {
		return c.NewLock("job").Acquire(relock.WithOwner(ctx, "w"))
	},
	"fixed lease": func(ctx context.Context, c *relock.Client) (*relock.Hold, error) {
		return c.NewLock("job", relock.NoWatchdog()).Acquire(ctx)
	},
	"one attempt": func(ctx context.Context, c *relock.Client) (*relock.Hold, error) {
		return c.NewLock("job").TryAcquire(ctx, 0)
	},
}

// abandoned has a client wait between a holder, which releases after 40 ms, and
// another waiter, until the instant that cancelAt arranges. A round trip takes
// 10 ms, so that everything happens at multiples of 5. A second call of the same
// client stands in line before or behind it, or there is none.
func abandoned(t *testing.T, manner, company string, cancelAt func(link *redistest.Link, cancel func())) {
	rig.Run(t, func(t *testing.T, s *rig.Lab) {
		c, link := s.Linked()
		link.Latency(5 * time.Millisecond)
		warm(t, c)
		holder := rig.MustAcquire(t, s.Eye.NewLock("job"))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		time.AfterFunc(40*time.Millisecond, func() {
			if err := holder.Release(); err != nil {
				t.Error(err)
			}
		})
		cancelAt(link, cancel)
		call, second := inCompany(ctx, c, manner, company)
		virtual.Sleep(12 * time.Millisecond)
		last := s.Through(redistest.NewLink(t, s.Server.Dial)).NewLock("job")
		var gotAt time.Time
		after := rig.Beside(func() error {
			return last.Do(t.Context(), func(context.Context) error { gotAt = time.Now(); return nil })
		})
		if err := <-call; err != nil && !gaveUp(err) {
			t.Error(err)
		}
		ended := time.Now()
		rig.Must(t, <-after)
		if late := gotAt.Sub(ended); late > time.Second {
			t.Errorf("the next waiter got the lock %v later: a grant was leaked until its lease ended", late)
		}
		if second != nil {
			rig.Must(t, <-second)
		}
		leavesNothing(t, s, c, last)
	})
}

// inCompany begins a call in one of the manners, and a second one of the same client.
func inCompany(ctx context.Context, c *relock.Client, manner, company string) (call, second rig.Going) {
	join := func() {
		second = rig.Beside(func() error {
			return c.NewLock("job").Do(context.WithoutCancel(ctx), func(context.Context) error { return nil })
		})
	}
	if company == "before" {
		join()
		synctest.Wait()
	}
	call = rig.Beside(func() error {
		h, err := manners[manner](ctx, c)
		if err == nil {
			err = h.Release()
		}
		return err
	})
	if company == "behind" {
		synctest.Wait()
		join()
	}
	return call, second
}

// leavesNothing looks in Redis and in the client, soon and after TokenKeep.
func leavesNothing(t *testing.T, s *rig.Lab, c *relock.Client, l *relock.Lock) {
	t.Helper()
	virtual.Sleep(time.Minute)
	rig.WantState(t, l, "at the end", "free waiting 0")
	rig.WantBare(t, s.Redis, "job")
	rig.WantGone(t, c)
	virtual.Sleep(10 * time.Minute)
	if keys := s.Server.Direct().Keys(); len(keys) > 0 {
		t.Errorf("after TokenKeep Redis has %q", keys)
	}
}

// warm makes the client subscribe, on a lock that is forgotten first.
func warm(t *testing.T, c *relock.Client) {
	t.Helper()
	l := c.NewLock("warm")
	rig.Must(t, l.Lock(t.Context()))
	rig.Must(t, l.Unlock())
	virtual.Sleep(time.Minute)
	synctest.Wait()
}

// TestCancelAtEveryInstantLeavesNothing lets the cancel fall on each step of a
// wait: its commands, their replies, the release, the grant, and in between.
func TestCancelAtEveryInstantLeavesNothing(t *testing.T) {
	for manner := range manners {
		for _, company := range []string{"alone", "before", "behind"} {
			t.Run(fmt.Sprint(manner, " ", company), func(t *testing.T) {
				for at := time.Duration(0); at <= 80*time.Millisecond; at += 2500 * time.Microsecond {
					again := rig.Rounds(1, 50)
					if at%(5*time.Millisecond) == 0 {
						again *= 2 // what falls on one instant runs in any order
					}
					for range again {
						abandoned(t, manner, company, func(_ *redistest.Link, cancel func()) { time.AfterFunc(at, cancel) })
					}
				}
			})
		}
	}
}

// TestCancelUponEveryCommandLeavesNothing cancels at the moment at which a
// command leaves, before the next one can.
func TestCancelUponEveryCommandLeavesNothing(t *testing.T) {
	for manner := range manners {
		for _, company := range []string{"alone", "before", "behind"} {
			t.Run(fmt.Sprint(manner, " ", company), func(t *testing.T) {
				for nth, seen := 1, 1; nth <= seen; nth++ {
					seen = 0
					abandoned(t, manner, company, func(link *redistest.Link, cancel func()) {
						link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
							if rig.ScriptOf(cmd) != "" {
								if seen++; seen == nth {
									cancel()
								}
							}
							return redistest.Pass
						})
					})
				}
			})
		}
	}
}
