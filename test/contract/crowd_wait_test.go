package contract_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// Fails when each call of a named owner has an entry, or a session, of its own.
func TestAnOwnersCallsOfAProcessWaitAndHoldAsOne(t *testing.T) {
	for kind, of := range rig.Crowds {
		t.Run(kind, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				holder, c := rig.CrowdHolder(x.Client(), kind, "a"), x.Client()
				rig.Must(t, holder.Lock(t.Context()))
				var locks []*relock.Lock
				var calls []<-chan error
				for range 5 {
					l := of(c, "a", relock.Owner("pool"))
					locks, calls = append(locks, l), append(calls, rig.Beside(func() error { return l.Lock(t.Context()) }))
				}
				x.Waits(holder, "pool")
				rig.Must(t, holder.Unlock())
				for _, call := range calls {
					rig.Must(t, rig.Returned(t, call))
				}
				x.Holders(holder, "pool", 5)
				if rig.Sessions(c) != 1 {
					t.Errorf("%d sessions, want one", rig.Sessions(c))
				}
				for _, l := range locks {
					rig.Must(t, l.Unlock())
				}
				x.Holders(holder, "", 0)
			})
		})
	}
}

// The first has the lock for no time at all; the others came no later than it did.
// Fails when those who stand behind are not counted before the first can unlock.
func TestAnOwnersCallsAreServedInTheTurnOfTheFirst(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		holder, c := x.Lock("a", relock.Fair()), x.Client()
		rig.Must(t, holder.Lock(t.Context()))
		var mu sync.Mutex
		var order []string
		call := func(l *relock.Lock, who string) {
			go func() {
				if err := l.Lock(context.Background()); err != nil {
					t.Error(err)
				}
				mu.Lock()
				order = append(order, who)
				mu.Unlock()
				rig.Must(t, l.Unlock())
			}()
			synctest.Wait()
			virtual.Sleep(time.Millisecond)
		}
		for range 9 {
			call(c.NewLock("a", relock.Fair(), relock.Owner("pool")), "pool")
		}
		call(x.Lock("a", relock.Fair()), "other")
		rig.Must(t, holder.Unlock())
		synctest.Wait()
		if len(order) != 10 || order[9] != "other" {
			t.Errorf("served %v, want the pool before the other", order)
		}
	})
}

// Fails when the place in the queue ends with the call that took it.
func TestAnOwnersPlaceOutlivesTheCallThatTookIt(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		holder, c := x.Lock("a", relock.Fair()), x.Client()
		rig.Must(t, holder.Lock(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		gone := rig.Beside(func() error { return c.NewLock("a", relock.Fair(), relock.Owner("pool")).Lock(ctx) })
		synctest.Wait()
		// Of the same terms, and of others.
		second := rig.Beside(func() error { return c.NewLock("a", relock.Fair(), relock.Owner("pool")).Lock(ctx) })
		synctest.Wait()
		l := c.NewLock("a", relock.Fair(), relock.Owner("pool"), relock.TTL(time.Minute))
		third := rig.Beside(func() error { return l.Lock(t.Context()) })
		synctest.Wait()
		other := x.Lock("a", relock.Fair())
		last := rig.Beside(func() error { return other.Lock(t.Context()) })
		synctest.Wait()
		cancel()
		rig.WantIs(t, rig.Returned(t, gone), context.Canceled)
		rig.WantIs(t, rig.Returned(t, second), context.Canceled)
		synctest.Wait()
		rig.Must(t, holder.Unlock())
		rig.Must(t, rig.Returned(t, third))
		rig.StillWaits(t, last)
		rig.Must(t, l.Unlock())
		rig.Must(t, rig.Returned(t, last))
		rig.Must(t, other.Unlock())
	})
}

// Fails when a hold that was reserved for a call that has gone stays.
func TestCancelsOfAnOwnersCallsLeaveNothing(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		holder, c := x.Lock("a"), x.Client()
		for round := range 60 {
			rig.Must(t, holder.Lock(t.Context()))
			var wg sync.WaitGroup
			ctx, cancel := context.WithCancel(t.Context())
			for i := range 6 {
				l := c.NewLock("a", relock.Owner("pool"))
				wg.Go(func() {
					of := ctx
					if i == round%7 {
						of = t.Context()
					}
					if l.Lock(of) == nil {
						rig.Must(t, l.Unlock())
					}
				})
			}
			synctest.Wait()
			if round%2 == 0 {
				go cancel()
			}
			rig.Must(t, holder.Unlock())
			cancel()
			wg.Wait()
			synctest.Wait()
			x.Holders(holder, "", 0)
		}
		if rig.Sessions(c) != 0 {
			t.Errorf("%d sessions stay", rig.Sessions(c))
		}
	})
}

// Fails when one script tells all, when some are told by none, and when one is told twice.
func TestAnOwnersManyClientsAreToldInSteps(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		const n = 700
		a := s.Actor()
		heard := s.Listen(a)
		r := rig.Raw{T: t, Redis: s.Redis, ID: rig.ID(a.Client)}
		r.Ask(rig.NonceOf('h'), "~h", time.Minute, 1, 0)
		for i := range n {
			r.Ask(fmt.Sprintf("%022d", i), "pool", time.Minute, 1, 0)
		}
		r.Release(rig.NonceOf('h'), "~h", 0)
		synctest.Wait()
		looks := func() (all []string) {
			for _, m := range heard() {
				if len(m) > 5 && m[:5] == "look " {
					all = append(all, m)
				}
			}
			return all
		}
		if got := len(looks()); got == 0 || got > 250 {
			t.Errorf("one script told %d of %d", got, n)
		}
		for range 5 {
			r.Release(rig.NonceOf('x'), "", 0)
		}
		synctest.Wait()
		all := looks()
		slices.Sort(all)
		if got := len(slices.Compact(all)); got != n-1 || len(all) != n-1 {
			t.Errorf("%d looks to %d waiters, want one to each of %d", len(all), got, n-1)
		}
	})
}

// Fails when what a client takes for the time keeps an ended nonce for long, and when a
// lock that nobody waits for forgets none.
func TestEndedNoncesAreForgottenWhileTheLockIsUsed(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		r := rig.Raw{T: t, Redis: s.Redis, ID: rig.ID(s.Actor().Client)}
		for i := range 1000 {
			r.Release(fmt.Sprintf("%022d", i), "r", time.Now().Add(30*24*time.Hour).UnixMilli())
		}
		hash := key.For("relock", "l").Hash
		if ttl := s.Redis.PTTL(t.Context(), hash).Val(); ttl > 11*time.Minute {
			t.Errorf("the hash of a lock that nobody uses stays for %v", ttl)
		}
		s.Until(2 * time.Minute)
		l := s.Actor().NewLock("l")
		for range 10 {
			rig.Must(t, l.Lock(t.Context()))
			rig.Must(t, l.Unlock())
		}
		if got := s.Redis.HLen(t.Context(), hash).Val(); got > 4 {
			t.Errorf("%d fields stay", got)
		}
	})
}

// Fails when one script looks at all readers, and when a page passes over one that is
// renewed meanwhile.
func TestManyReadersAreReadInPages(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		const n = 600
		c, link := x.Linked()
		for i := range n {
			rig.Must(t, c.NewRWLock("a").RLock(t.Context()))
			if i%50 == 0 {
				virtual.Sleep(10 * time.Millisecond)
			}
		}
		var info relock.Info
		scripts := commandsDuring(link.Commands, func() {
			var err error
			info, err = c.NewLock("a").Info(t.Context())
			rig.Must(t, err)
		})
		if len(info.Holders) != n || scripts < 3 || scripts > 4 {
			t.Errorf("%d readers in %d scripts, want %d in 3", len(info.Holders), scripts, n)
		}
		if l := wantListed(t, c, "", "a")["a"]; len(l.Holders) != n {
			t.Errorf("%d readers are listed, want %d", len(l.Holders), n)
		}
		if removed, err := c.NewLock("a").ForceUnlock(t.Context()); !removed || err != nil {
			t.Errorf("ForceUnlock = %v, %v", removed, err)
		}
		x.Holders(c.NewLock("a"), "", 0)
	})
}
