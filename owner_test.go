package relock_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
)

// TestNamedOwnerReentersFromAnywhere takes one lock three times: by one handle,
// by another of the same client, and by one of another client, each on a
// goroutine of its own.
func TestNamedOwnerReentersFromAnywhere(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c := x.client()
		first, second, third := c.NewLock("a"), c.NewLock("a"), x.lock("a")
		for i, l := range []*relock.Lock{first, second, third, first} {
			noErr(t, hasReturned(t, beside(func() error { return l.Lock(x.by("me")) })))
			x.holders(l, "me", i+1)
		}
		if first.HoldCount() != 2 || second.HoldCount() != 1 || third.HoldCount() != 1 {
			t.Errorf("holds %d %d %d, want 2 1 1", first.HoldCount(), second.HoldCount(), third.HoldCount())
		}
		for i, l := range []*relock.Lock{third, first, second, first} {
			x.refuses(x.lock("a"))
			noErr(t, l.Unlock())
			x.holders(l, "me", 3-i)
		}
		x.frees("a")
	})
}

func TestHandleNamesTheOwnerOfContextsThatDoNot(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		named, plain := x.lock("a", relock.Owner("me")), x.lock("a")
		noErr(t, named.Lock(t.Context()))
		noErr(t, named.Lock(x.by("me")))
		noErr(t, plain.Lock(x.by("me")))
		x.holders(plain, "me", 3)
		x.refuses(plain)
		noErr(t, named.Unlock())
		noErr(t, named.Unlock())
		noErr(t, plain.Unlock())
	})
}

func TestTwoNamesAreAMismatch(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l := x.lock("a", relock.Owner("me"))
		wantIs(t, l.Lock(x.by("you")), relock.ErrOwnerMismatch)
		got, err := l.TryLock(x.by("you"), time.Second)
		wantIs(t, err, relock.ErrOwnerMismatch)
		if got {
			t.Error("acquired")
		}
		noErr(t, l.Lock(x.by("me")))
		wantIs(t, l.Lock(x.by("you")), relock.ErrOwnerMismatch)
		x.holders(l, "me", 1)
		noErr(t, l.Unlock())
	})
}

func TestOtherOwnersAreExcluded(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l := x.lock("a")
		noErr(t, l.Lock(x.by("me")))
		for _, other := range []*relock.Lock{l, x.lock("a")} {
			if got, err := other.TryLock(x.by("you"), 0); got || err != nil {
				t.Errorf("TryLock = %v, %v, want false, nil", got, err)
			}
		}
		you := beside(func() error { return l.Lock(x.by("you")) })
		x.waits(l, "you")
		stillWaits(t, you)
		noErr(t, l.Unlock())
		noErr(t, hasReturned(t, you))
		x.holders(l, "you", 1)
		noErr(t, l.Unlock())
	})
}

// TestEveryAnonymousCallIsItsOwnOwner: also on the handle and the goroutine
// that hold the lock.
func TestEveryAnonymousCallIsItsOwnOwner(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l := x.lock("a")
		h, err := l.Acquire(t.Context())
		noErr(t, err)
		if got, err := l.TryLock(t.Context(), 0); got || err != nil {
			t.Errorf("nested TryLock = %v, %v, want false, nil", got, err)
		}
		if got, err := l.TryLock(t.Context(), time.Second); got || err != nil {
			t.Errorf("nested TryLock = %v, %v, want false, nil", got, err)
		}
		noErr(t, h.Release())
		again, err := l.Acquire(t.Context())
		noErr(t, err)
		if again.Owner() == h.Owner() || h.Owner() == "" {
			t.Errorf("owners %q and %q, want two", h.Owner(), again.Owner())
		}
		noErr(t, again.Release())
	})
}

func TestGoroutinesThatShareAHandleExcludeEachOther(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		shared, elsewhere := x.lock("a"), x.lock("a")
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
					time.Sleep(1_300 * time.Microsecond)
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
	inLab(t, func(t *testing.T, x *lab) {
		l := x.lock("a", relock.Owner("me"))
		all := make([]<-chan error, 8)
		for i := range all {
			all[i] = beside(func() error { return l.Lock(t.Context()) })
		}
		for _, done := range all {
			noErr(t, hasReturned(t, done))
		}
		x.holders(l, "me", len(all))
		for range all {
			noErr(t, l.Unlock())
		}
		x.frees("a")
	})
}

// TestWaitingCallsOfOneNameAreServedTogether: the first of them that gets the
// lock brings the others along, in its own process, where they share its place in
// the queue, and in another.
func TestWaitingCallsOfOneNameAreServedTogether(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		held, here, there := x.lock("a"), x.lock("a"), x.lock("a")
		noErr(t, held.Lock(t.Context()))
		var all []<-chan error
		for _, l := range []*relock.Lock{here, here, there} {
			all = append(all, beside(func() error { return l.Lock(x.by("me")) }))
			synctest.Wait()
		}
		x.waits(held, "me", "me")
		noErr(t, held.Unlock())
		for _, done := range all {
			noErr(t, hasReturned(t, done))
		}
		x.holders(held, "me", 3)
		x.waits(held)
		noErr(t, here.Unlock())
		noErr(t, here.Unlock())
		x.refuses(held)
		noErr(t, there.Unlock())
		x.frees("a")
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
	if a == b || a == "me" || !ok {
		t.Errorf("new owners %q and %q", a, b)
	}
}

func TestOwnerIsOneTo512BytesOfUTF8(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		for _, bad := range []string{"", strings.Repeat("x", 513), "a\xff"} {
			l := x.lock("a")
			wantIs(t, l.Lock(x.by(bad)), relock.ErrInvalidOption)
			l = x.lock("a", relock.Owner(bad))
			wantIs(t, l.Lock(t.Context()), relock.ErrInvalidOption)
		}
		if keys := x.srv.Direct().Keys(); len(keys) != 0 {
			t.Errorf("keys %v, want none", keys)
		}
	})
}

// TestHoldsOfADeadProcessEndAlone: the owner holds in two processes, of which
// one ends without a word. The other's renewals keep its own hold only.
func TestHoldsOfADeadProcessEndAlone(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		dying := x.client()
		alive, dead := x.lock("a"), dying.NewLock("a")
		noErr(t, alive.Lock(x.by("me")))
		time.Sleep(time.Second)
		noErr(t, dead.Lock(x.by("me")))
		noErr(t, dying.Close())
		x.holders(alive, "me", 2)
		time.Sleep(29 * time.Second)
		x.holders(alive, "me", 2)
		time.Sleep(1001 * time.Millisecond)
		x.holders(alive, "me", 1)
		time.Sleep(3 * time.Minute)
		x.refuses(x.lock("a"))
		noErr(t, alive.Unlock())
		x.frees("a")
	})
}
