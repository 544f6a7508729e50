package contract_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// TestNamedOwnerReentersFromAnywhere takes one lock three times: by one handle,
// by another of the same client, and by one of another client, each on a
// goroutine of its own.
func TestNamedOwnerReentersFromAnywhere(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		first, second, third := c.NewLock("a"), c.NewLock("a"), x.Lock("a")
		for i, l := range []*relock.Lock{first, second, third, first} {
			rig.Must(t, rig.Returned(t, rig.Beside(func() error { return l.Lock(x.By("me")) })))
			x.Holders(l, "me", i+1)
		}
		if first.HoldCount() != 2 || second.HoldCount() != 1 || third.HoldCount() != 1 {
			t.Errorf("holds %d %d %d, want 2 1 1", first.HoldCount(), second.HoldCount(), third.HoldCount())
		}
		for i, l := range []*relock.Lock{third, first, second, first} {
			x.Refuses(x.Lock("a"))
			rig.Must(t, l.Unlock())
			x.Holders(l, "me", 3-i)
		}
		x.Frees("a")
	})
}

func TestHandleNamesTheOwnerOfContextsThatDoNot(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		named, plain := x.Lock("a", relock.Owner("me")), x.Lock("a")
		rig.Must(t, named.Lock(t.Context()))
		rig.Must(t, named.Lock(x.By("me")))
		rig.Must(t, plain.Lock(x.By("me")))
		x.Holders(plain, "me", 3)
		x.Refuses(plain)
		rig.Must(t, named.Unlock())
		rig.Must(t, named.Unlock())
		rig.Must(t, plain.Unlock())
	})
}

func TestTwoNamesAreAMismatch(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a", relock.Owner("me"))
		rig.WantIs(t, l.Lock(x.By("you")), relock.ErrOwnerMismatch)
		got, err := l.TryLock(x.By("you"), time.Second)
		rig.WantIs(t, err, relock.ErrOwnerMismatch)
		if got {
			t.Error("acquired")
		}
		rig.Must(t, l.Lock(x.By("me")))
		rig.WantIs(t, l.Lock(x.By("you")), relock.ErrOwnerMismatch)
		x.Holders(l, "me", 1)
		rig.Must(t, l.Unlock())
	})
}

func TestOtherOwnersAreExcluded(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a")
		rig.Must(t, l.Lock(x.By("me")))
		for _, other := range []*relock.Lock{l, x.Lock("a")} {
			if got, err := other.TryLock(x.By("you"), 0); got || err != nil {
				t.Errorf("TryLock = %v, %v, want false, nil", got, err)
			}
		}
		you := rig.Beside(func() error { return l.Lock(x.By("you")) })
		x.Waits(l, "you")
		rig.StillWaits(t, you)
		rig.Must(t, l.Unlock())
		rig.Must(t, rig.Returned(t, you))
		x.Holders(l, "you", 1)
		rig.Must(t, l.Unlock())
	})
}

// TestEveryAnonymousCallIsItsOwnOwner: also on the handle and the goroutine
// that hold the lock.
func TestEveryAnonymousCallIsItsOwnOwner(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a")
		h, err := l.Acquire(t.Context())
		rig.Must(t, err)
		if got, err := l.TryLock(t.Context(), 0); got || err != nil {
			t.Errorf("nested TryLock = %v, %v, want false, nil", got, err)
		}
		if got, err := l.TryLock(t.Context(), time.Second); got || err != nil {
			t.Errorf("nested TryLock = %v, %v, want false, nil", got, err)
		}
		rig.Must(t, h.Release())
		again, err := l.Acquire(t.Context())
		rig.Must(t, err)
		if again.Owner() == h.Owner() || h.Owner() == "" {
			t.Errorf("owners %q and %q, want two", h.Owner(), again.Owner())
		}
		rig.Must(t, again.Release())
	})
}

// Go does not say which goroutine calls, so a call beside another of its owner looks like one
// within it. Goroutines that are to exclude each other have an owner each.
func TestGoroutinesOfOneOwnerAreInsideTogetherAndOthersAreNot(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a")
		most := func(owner func() context.Context) int64 {
			var inside, most atomic.Int64
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					ctx := owner()
					if err := l.Lock(ctx); err != nil {
						t.Error(err)
						return
					}
					most.Store(max(most.Load(), inside.Add(1)))
					virtual.Sleep(time.Second)
					inside.Add(-1)
					if err := l.Unlock(); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			return most.Load()
		}
		one := relock.WithNewOwner(t.Context())
		if n := most(func() context.Context { return one }); n != 3 {
			t.Errorf("of one owner %d were inside together, want all 3", n)
		}
		if n := most(func() context.Context { return relock.WithNewOwner(one) }); n != 1 {
			t.Errorf("of owners of their own %d were inside together, want 1", n)
		}
	})
}

func TestGoroutinesThatShareAHandleExcludeEachOther(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		shared, elsewhere := x.Lock("a"), x.Lock("a")
		inside, total := 0, 0
		var wg sync.WaitGroup
		for i := range 20 {
			l := []*relock.Lock{shared, elsewhere}[i%2]
			wg.Go(func() {
				for range 5 {
					if err := l.Lock(t.Context()); err != nil {
						t.Error(err)
						return
					}
					if inside++; inside != 1 {
						t.Errorf("%d inside", inside)
					}
					virtual.Sleep(1_300 * time.Microsecond)
					inside--
					total++
					if err := l.Unlock(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if total != 100 {
			t.Errorf("%d turns, want 100", total)
		}
	})
}

func TestGoroutinesOfOneNameDoNotExcludeEachOther(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a", relock.Owner("me"))
		all := make([]<-chan error, 8)
		for i := range all {
			all[i] = rig.Beside(func() error { return l.Lock(t.Context()) })
		}
		for _, done := range all {
			rig.Must(t, rig.Returned(t, done))
		}
		x.Holders(l, "me", len(all))
		for range all {
			rig.Must(t, l.Unlock())
		}
		x.Frees("a")
	})
}

// TestWaitingCallsOfOneNameAreServedTogether: the first of them that gets the
// lock brings the others along, in its own process, where they share its place in
// the queue, and in another.
func TestWaitingCallsOfOneNameAreServedTogether(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		held, here, there := x.Lock("a"), x.Lock("a"), x.Lock("a")
		rig.Must(t, held.Lock(t.Context()))
		var all []<-chan error
		for _, l := range []*relock.Lock{here, here, there} {
			all = append(all, rig.Beside(func() error { return l.Lock(x.By("me")) }))
			synctest.Wait()
		}
		x.Waits(held, "me", "me")
		rig.Must(t, held.Unlock())
		for _, done := range all {
			rig.Must(t, rig.Returned(t, done))
		}
		x.Holders(held, "me", 3)
		x.Waits(held)
		rig.Must(t, here.Unlock())
		rig.Must(t, here.Unlock())
		x.Refuses(held)
		rig.Must(t, there.Unlock())
		x.Frees("a")
	})
}

func TestOwnerTravelsWithTheContext(t *testing.T) {
	if id, ok := relock.OwnerFrom(t.Context()); id != "" || ok {
		t.Errorf("OwnerFrom of a plain context = %q, %v", id, ok)
	}
	ctx := relock.WithOwner(t.Context(), "me")
	child, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	if id, ok := relock.OwnerFrom(child); id != "me" || !ok {
		t.Errorf("OwnerFrom of a child = %q, %v, want me", id, ok)
	}
	a, _ := relock.OwnerFrom(relock.WithNewOwner(child))
	b, ok := relock.OwnerFrom(relock.WithNewOwner(child))
	if a == b || uuid.Validate(a) != nil || len(a) != 36 || !ok {
		t.Errorf("new owners %q and %q, want two UUIDs", a, b)
	}
}

func TestANilContextHasNoOwner(t *testing.T) {
	if id, ok := relock.OwnerFrom(nil); id != "" || ok { //nolint:staticcheck // a nil context is what is tried
		t.Errorf("OwnerFrom of no context = %q, %v", id, ok)
	}
}

// badOwners are no names of owners.
var badOwners = []string{"", strings.Repeat("x", 513), "a\xff"}

func TestOwnerIsOneTo512BytesOfUTF8(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		for _, bad := range badOwners {
			l := x.Lock("a")
			rig.WantIs(t, l.Lock(x.By(bad)), relock.ErrInvalidOption)
			l = x.Lock("a", relock.Owner(bad))
			rig.WantIs(t, l.Lock(t.Context()), relock.ErrInvalidOption)
		}
		if keys := x.Server.Direct().Keys(); len(keys) != 0 {
			t.Errorf("keys %v, want none", keys)
		}
	})
}

// TestHoldsOfADeadProcessEndAlone: the owner holds in two processes, of which
// one ends without a word. The other's renewals keep its own hold only.
func TestHoldsOfADeadProcessEndAlone(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		dying := x.Client()
		alive, dead := x.Lock("a"), dying.NewLock("a")
		rig.Must(t, alive.Lock(x.By("me")))
		virtual.Sleep(time.Second)
		rig.Must(t, dead.Lock(x.By("me")))
		rig.Must(t, dying.Close())
		x.Holders(alive, "me", 2)
		virtual.Sleep(29 * time.Second)
		x.Holders(alive, "me", 2)
		virtual.Sleep(1001 * time.Millisecond)
		x.Holders(alive, "me", 1)
		virtual.Sleep(3 * time.Minute)
		x.Refuses(x.Lock("a"))
		rig.Must(t, alive.Unlock())
		x.Frees("a")
	})
}

// Fails when a branch and the owner it descends from pass for one owner, whichever of the two the handle names.
func TestABranchAndItsParentAreAMismatch(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		branch := relock.WithChildOwner(x.By("me"))
		name, _ := relock.OwnerFrom(branch)
		for of, ctx := range map[string]context.Context{"me": branch, name: x.By("me")} {
			l := x.Lock("a", relock.Owner(of))
			rig.WantIs(t, l.Lock(ctx), relock.ErrOwnerMismatch)
			got, err := l.TryLock(ctx, 0)
			if rig.WantIs(t, err, relock.ErrOwnerMismatch); got {
				t.Errorf("the handle of %s is locked", of)
			}
		}
		x.Frees("a")
	})
}
