package contract_test

import (
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

func TestSoManyHoldASemaphoreAtATime(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		here, there := x.Client().NewSemaphore("s", 3), x.Client().NewSemaphore("s", 3)
		a, b, c := x.Take(here), x.Take(there), x.Take(here)
		rig.WantLater(t, a.Token(), b.Token(), c.Token())
		if got, err := there.TryLock(t.Context(), 0); got || err != nil {
			t.Errorf("TryLock = %v, %v of a fourth, want false, nil", got, err)
		}
		fourth, fifth := x.Begin(there), x.Begin(here)
		fourth.Waits()
		rig.End(t, b)
		d := fourth.Holds()
		rig.WantLater(t, c.Token(), d.Token())
		fifth.Waits()
		rig.End(t, a)
		rig.End(t, c)
		e := fifth.Holds()
		virtual.Sleep(5 * time.Minute) // all are renewed
		for _, h := range []*relock.Hold{d, e} {
			rig.Must(t, h.Err())
			rig.End(t, h)
		}
		all := x.Take(x.Client().NewSemaphore("s", 3, relock.Weight(3)))
		rig.End(t, all)
	})
}

// Fails when a request is let in while somebody waits.
func TestASemaphoreServesWhoComesFirst(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		light := func() *relock.Lock { return x.Client().NewSemaphore("s", 5) }
		heavy := x.Client().NewSemaphore("s", 5, relock.Weight(4))
		a, b := x.Take(light()), x.Take(light())
		h := x.Begin(heavy)
		h.Waits()
		late := x.Begin(light())
		late.Waits() // though three are to be had
		if got, err := light().TryLock(t.Context(), 0); got || err != nil {
			t.Errorf("TryLock = %v, %v past who waits, want false, nil", got, err)
		}
		rig.End(t, a)
		held := h.Holds()
		late.Waits()
		rig.End(t, b)
		rig.End(t, late.Holds())
		rig.End(t, held)
	})
}

// Fails when the permits of a dead holder come back with another's lease.
func TestPermitsOfADeadHolderComeBackWithItsOwnLease(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		dead := x.Actor()
		x.Take(dead.NewSemaphore("s", 3, relock.Weight(2), relock.TTL(2*time.Second)))
		alive := x.Take(x.Client().NewSemaphore("s", 3, relock.TTL(20*time.Second)))
		dead.Link.Hole()
		next, last := x.Begin(x.Client().NewSemaphore("s", 3, relock.Weight(2))), x.Begin(x.Client().NewSemaphore("s", 3))
		virtual.Sleep(1900 * time.Millisecond)
		next.Waits()
		virtual.Sleep(150 * time.Millisecond)
		rig.End(t, next.Holds())
		rig.End(t, last.Holds())
		rig.Must(t, alive.Err())
		rig.End(t, alive)
	})
}

// Fails when TryLock takes the word of a script that has not forgotten all the dead.
func TestPermitsOfManyDeadHoldersAreToBeHadAtOnce(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		const many = 600
		alive, dead := x.Client(), x.Actor()
		rig.Must(t, alive.NewSemaphore("s", many).Lock(t.Context()))
		for range many - 1 {
			x.Take(dead.NewSemaphore("s", many, relock.TTL(2*time.Second)))
		}
		dead.Link.Hole()
		virtual.Sleep(2001 * time.Millisecond)
		got, err := x.Client().NewSemaphore("s", many, relock.Weight(many-1)).TryLock(t.Context(), 0)
		if rig.Must(t, err); !got {
			t.Error("TryLock = false, and all permits but one are free")
		}
	})
}

// Fails when who waits is not told of the first lease that ends.
func TestWhoWaitsBehindADeadHeavyOneIsServedWhenItsEntryEnds(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		holder := x.Take(x.Client().NewSemaphore("s", 2))
		dead := x.Actor()
		heavy := x.Begin(dead.NewSemaphore("s", 2, relock.Weight(2), relock.TTL(3*time.Second)))
		heavy.Waits()
		light := x.Begin(x.Client().NewSemaphore("s", 2))
		light.Waits()
		dead.Link.Hole()
		virtual.Sleep(2900 * time.Millisecond)
		light.Waits()
		virtual.Sleep(250 * time.Millisecond)
		rig.End(t, light.Holds())
		rig.End(t, holder)
		heavy.Stop()
	})
}

func TestANamedOwnersReentryTakesNoFurtherPermits(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		here, there := x.Client(), x.Client()
		in := x.By("me")
		s := here.NewSemaphore("s", 3, relock.Weight(2))
		rig.Must(t, s.Lock(in))
		rig.Must(t, s.Lock(in))
		elsewhere := there.NewSemaphore("s", 3, relock.Weight(3)) // a heavier one takes none either
		rig.Must(t, elsewhere.Lock(in))
		if s.Token() != elsewhere.Token() {
			t.Errorf("tokens %d and %d of one grant", s.Token(), elsewhere.Token())
		}
		one := x.Take(x.Client().NewSemaphore("s", 3))
		if got, err := x.Client().NewSemaphore("s", 3).TryLock(t.Context(), 0); got || err != nil {
			t.Errorf("TryLock = %v, %v beside 2 and 1 of 3, want false, nil", got, err)
		}
		rig.Must(t, s.Unlock())
		rig.Must(t, s.Unlock())
		// The grant is as heavy as it was, until its last hold has ended.
		if got, err := x.Client().NewSemaphore("s", 3).TryLock(t.Context(), 0); got || err != nil {
			t.Errorf("TryLock = %v, %v beside 2 and 1 of 3, want false, nil", got, err)
		}
		rig.End(t, one)
		rig.Must(t, elsewhere.Unlock())
		rig.End(t, x.Take(x.Client().NewSemaphore("s", 3, relock.Weight(3))))
	})
}

func TestEachRequestIsJudgedByItsOwnPermits(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		before, after := x.Client().NewSemaphore("s", 2), x.Client().NewSemaphore("s", 4)
		a, b := x.Take(before), x.Take(after)
		if got, err := before.TryLock(t.Context(), 0); got || err != nil {
			t.Errorf("TryLock = %v, %v of a third of 2, want false, nil", got, err)
		}
		c, d := x.Take(after), x.Take(after)
		waits := x.Begin(before)
		rig.End(t, a)
		rig.End(t, b)
		waits.Waits()
		rig.End(t, c)
		rig.End(t, waits.Holds())
		rig.End(t, d)
	})
}

func TestASemaphoreIsAKindOfItsOwn(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		s := c.NewSemaphore("a", 2)
		others := []*relock.Lock{c.NewLock("a"), c.NewLock("a", relock.Fair()), c.NewRWLock("a").RLocker(), c.NewRWLock("a").WLocker()}
		h := x.Take(s)
		for _, l := range others {
			rig.WantIs(t, l.Lock(t.Context()), relock.ErrKind)
		}
		rig.End(t, h)
		for _, l := range others {
			rig.Must(t, l.Lock(t.Context()))
			rig.WantIs(t, s.Lock(t.Context()), relock.ErrKind)
			rig.Must(t, l.Unlock())
		}
		info, err := s.Info(t.Context())
		rig.Must(t, err)
		rig.End(t, x.Take(s))
		if info.Kind == "semaphore" {
			t.Error("the name is a semaphore before anybody has taken it as one")
		}
	})
}

func TestInfoTellsWhoHasASemaphore(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		s := x.Client().NewSemaphore("s", 2)
		var tokens []int64
		for _, who := range []string{"a", "b"} {
			h, err := s.Acquire(x.By(who))
			rig.Must(t, err)
			tokens = append(tokens, h.Token())
			want := relock.Holder{Owner: who, Holds: 1, Token: h.Token(), TTL: 30 * time.Second, Weight: 1}
			info, err := s.Info(t.Context())
			rig.Must(t, err)
			for i := range info.Holders {
				info.Holders[i].Label, info.Holders[i].Held = "", 0
			}
			if info.Kind != "semaphore" || len(info.Holders) != len(tokens) || info.Holders[len(tokens)-1] != want && info.Holders[0] != want {
				t.Errorf("Info = %+v, want %+v in it", info, want)
			}
		}
		third := x.BeginAs("c", s)
		third.Waits()
		waiters, err := s.Waiters(t.Context())
		rig.Must(t, err)
		if len(waiters) != 1 || waiters[0].Owner != "c" || waiters[0].Read {
			t.Errorf("Waiters = %+v, want c, who does not read", waiters)
		}
		forced, err := x.Client().NewSemaphore("s", 2).ForceUnlock(t.Context())
		rig.Must(t, err)
		if rig.End(t, third.Holds()); !forced {
			t.Error("ForceUnlock has ended nothing")
		}
		rig.End(t, x.Take(x.Client().NewSemaphore("s", 2, relock.Weight(2))))
	})
}
