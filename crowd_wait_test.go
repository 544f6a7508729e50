package relock_test

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
)

// Fails when each call of a named owner has an entry, or a session, of its own.
func TestAnOwnersCallsOfAProcessWaitAndHoldAsOne(t *testing.T) {
	for kind, of := range crowds {
		t.Run(kind, func(t *testing.T) {
			inLab(t, func(t *testing.T, x *lab) {
				holder, c := crowdHolder(x.client(), kind, "a"), x.client()
				noErr(t, holder.Lock(t.Context()))
				var locks []*relock.Lock
				var calls []<-chan error
				for range 5 {
					l := of(c, "a", relock.Owner("pool"))
					locks, calls = append(locks, l), append(calls, beside(func() error { return l.Lock(t.Context()) }))
				}
				x.waits(holder, "pool")
				noErr(t, holder.Unlock())
				for _, call := range calls {
					noErr(t, hasReturned(t, call))
				}
				x.holders(holder, "pool", 5)
				if c.Sessions() != 1 {
					t.Errorf("%d sessions, want one", c.Sessions())
				}
				for _, l := range locks {
					noErr(t, l.Unlock())
				}
				x.holders(holder, "", 0)
			})
		})
	}
}

// The first has the lock for no time at all; the others came no later than it did.
// Fails when those who stand behind are not counted before the first can unlock.
func TestAnOwnersCallsAreServedInTheTurnOfTheFirst(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		holder, c := x.lock("a", relock.Fair()), x.client()
		noErr(t, holder.Lock(t.Context()))
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
				noErr(t, l.Unlock())
			}()
			synctest.Wait()
			time.Sleep(time.Millisecond)
		}
		for range 9 {
			call(c.NewLock("a", relock.Fair(), relock.Owner("pool")), "pool")
		}
		call(x.lock("a", relock.Fair()), "other")
		noErr(t, holder.Unlock())
		synctest.Wait()
		if len(order) != 10 || order[9] != "other" {
			t.Errorf("served %v, want the pool before the other", order)
		}
	})
}

// Fails when the place in the queue ends with the call that took it.
func TestAnOwnersPlaceOutlivesTheCallThatTookIt(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		holder, c := x.lock("a", relock.Fair()), x.client()
		noErr(t, holder.Lock(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		gone := beside(func() error { return c.NewLock("a", relock.Fair(), relock.Owner("pool")).Lock(ctx) })
		synctest.Wait()
		// Of the same terms, and of others.
		second := beside(func() error { return c.NewLock("a", relock.Fair(), relock.Owner("pool")).Lock(ctx) })
		synctest.Wait()
		l := c.NewLock("a", relock.Fair(), relock.Owner("pool"), relock.TTL(time.Minute))
		third := beside(func() error { return l.Lock(t.Context()) })
		synctest.Wait()
		other := x.lock("a", relock.Fair())
		last := beside(func() error { return other.Lock(t.Context()) })
		synctest.Wait()
		cancel()
		wantIs(t, hasReturned(t, gone), context.Canceled)
		wantIs(t, hasReturned(t, second), context.Canceled)
		synctest.Wait()
		noErr(t, holder.Unlock())
		noErr(t, hasReturned(t, third))
		stillWaits(t, last)
		noErr(t, l.Unlock())
		noErr(t, hasReturned(t, last))
		noErr(t, other.Unlock())
	})
}

// Fails when a hold that was reserved for a call that has gone stays.
func TestCancelsOfAnOwnersCallsLeaveNothing(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		holder, c := x.lock("a"), x.client()
		for round := range 60 {
			noErr(t, holder.Lock(t.Context()))
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
						noErr(t, l.Unlock())
					}
				})
			}
			synctest.Wait()
			if round%2 == 0 {
				go cancel()
			}
			noErr(t, holder.Unlock())
			cancel()
			wg.Wait()
			synctest.Wait()
			x.holders(holder, "", 0)
		}
		if c.Sessions() != 0 {
			t.Errorf("%d sessions stay", c.Sessions())
		}
	})
}

// Fails when one script tells all, when some are told by none, and when one is told twice.
func TestAnOwnersManyClientsAreToldInSteps(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		const n = 700
		a := s.actor()
		heard := s.listen(a)
		r := raw{t, s.rdb, a.ID()}
		r.ask(nonce('h'), "h", 0, time.Minute, 1, 0)
		for i := range n {
			r.ask(fmt.Sprintf("%022d", i), "pool", 1, time.Minute, 1, 0)
		}
		r.release(nonce('h'), "h", 0)
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
			r.release(nonce('x'), "", 0)
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
	play(t, func(t *testing.T, s *scene) {
		r := raw{t, s.rdb, s.actor().ID()}
		for i := range 1000 {
			r.release(fmt.Sprintf("%022d", i), "r", time.Now().Add(30*24*time.Hour).UnixMilli())
		}
		hash := key.For("relock", "l").Hash
		if ttl := s.rdb.PTTL(t.Context(), hash).Val(); ttl > 11*time.Minute {
			t.Errorf("the hash of a lock that nobody uses stays for %v", ttl)
		}
		s.until(2 * time.Minute)
		l := s.actor().NewLock("l")
		for range 10 {
			must(t, l.Lock(t.Context()))
			must(t, l.Unlock())
		}
		if got := s.rdb.HLen(t.Context(), hash).Val(); got > 4 {
			t.Errorf("%d fields stay", got)
		}
	})
}

// Fails when one script looks at all readers, and when a page passes over one that is
// renewed meanwhile.
func TestManyReadersAreReadInPages(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		const n = 600
		c, link := x.linked()
		for i := range n {
			noErr(t, c.NewRWLock("a").RLock(t.Context()))
			if i%50 == 0 {
				time.Sleep(10 * time.Millisecond)
			}
		}
		var info relock.Info
		scripts := commandsDuring(link.Commands, func() {
			var err error
			info, err = c.NewLock("a").Info(t.Context())
			noErr(t, err)
		})
		if len(info.Holders) != n || scripts < 3 || scripts > 4 {
			t.Errorf("%d readers in %d scripts, want %d in 3", len(info.Holders), scripts, n)
		}
		if removed, err := c.NewLock("a").ForceUnlock(t.Context()); !removed || err != nil {
			t.Errorf("ForceUnlock = %v, %v", removed, err)
		}
		x.holders(c.NewLock("a"), "", 0)
	})
}
