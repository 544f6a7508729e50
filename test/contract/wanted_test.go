package contract_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/rig"
)

// wantedKinds are pairs of handles of the lock "l": one that holds, and one that then has to wait for it.
var wantedKinds = map[string]func(a, b *relock.Client) (holds, waits *relock.Lock){
	"plain": func(a, b *relock.Client) (holds, waits *relock.Lock) { return a.NewLock("l"), b.NewLock("l") },
	"local": func(a, b *relock.Client) (holds, waits *relock.Lock) {
		return a.NewLock("l", relock.LocalReentry()), b.NewLock("l", relock.LocalReentry())
	},
	"fair": func(a, b *relock.Client) (holds, waits *relock.Lock) {
		return a.NewLock("l", relock.Fair()), b.NewLock("l", relock.Fair())
	},
	"fixed lease": func(a, b *relock.Client) (holds, waits *relock.Lock) {
		return a.NewLock("l", relock.NoWatchdog(), relock.TTL(time.Hour)), b.NewLock("l")
	},
	"a writer, by a writer": func(a, b *relock.Client) (holds, waits *relock.Lock) {
		return a.NewRWLock("l").WLocker(), b.NewRWLock("l").WLocker()
	},
	"a writer, by a reader": func(a, b *relock.Client) (holds, waits *relock.Lock) {
		return a.NewRWLock("l").WLocker(), b.NewRWLock("l").RLocker()
	},
	"a reader, by a writer": func(a, b *relock.Client) (holds, waits *relock.Lock) {
		return a.NewRWLock("l").RLocker(), b.NewRWLock("l").WLocker()
	},
	"a reader, by a fair writer": func(a, b *relock.Client) (holds, waits *relock.Lock) {
		return a.NewRWLock("l", relock.Fair()).RLocker(), b.NewRWLock("l", relock.Fair()).WLocker()
	},
	"permits": func(a, b *relock.Client) (holds, waits *relock.Lock) {
		return a.NewSemaphore("l", 3, relock.Weight(2)), b.NewSemaphore("l", 3, relock.Weight(2))
	},
}

func eachWanted(t *testing.T, f func(t *testing.T, s *rig.Lab, a, b *rig.Actor, holds, waits *relock.Lock), opts ...relock.Option) {
	t.Helper()
	for kind, handles := range wantedKinds {
		t.Run(kind, func(t *testing.T) {
			rig.Play(t, func(t *testing.T, s *rig.Lab) {
				if len(opts) > 0 {
					s.Server.Shard()
				}
				a, b := s.Actor(opts...), s.Actor(opts...)
				holds, waits := handles(a.Client, b.Client)
				f(t, s, a, b, holds, waits)
			})
		})
	}
}

// wantWanted fails unless the hold is wanted, or with want false unless it is not.
func wantWanted(t *testing.T, what string, h *relock.Hold, want bool) {
	t.Helper()
	synctest.Wait()
	if got := rig.IsShut(h.Wanted()); got != want {
		t.Errorf("%s: wanted is %v, want %v", what, got, want)
	}
}

// wants counts the messages which say that somebody waits.
func wants(heard []string) (n int) {
	for _, m := range heard {
		if strings.HasPrefix(m, "wanted ") {
			n++
		}
	}
	return n
}

// No virtual time passes between the waiter's enqueueing and the message.
func TestHolderIsWantedAsSoonAsAnotherOwnerWaits(t *testing.T) {
	for name, opts := range map[string][]relock.Option{"inbox": nil, "sharded": {relock.ShardedPubSub()}} {
		t.Run(name, func(t *testing.T) {
			eachWanted(t, func(t *testing.T, s *rig.Lab, _, b *rig.Actor, holds, waits *relock.Lock) {
				s.WaitOnce(b) // a request without an echo takes the usual way
				h := s.Take(holds)
				wanted := h.Wanted()
				wantWanted(t, "alone", h, false)
				waiter := s.Begin(waits)
				waiter.Waits()
				if !rig.IsShut(wanted) {
					t.Error("not wanted by the waiter")
				}
				rig.Must(t, h.Err())
				rig.End(t, h)
				rig.End(t, waiter.Holds())
				wantWanted(t, "after its release", h, true)
			}, opts...)
		})
	}
}

func TestTryLockWithoutAWaitWantsNothing(t *testing.T) {
	eachWanted(t, func(t *testing.T, s *rig.Lab, a, b *rig.Actor, holds, waits *relock.Lock) {
		h, heard := s.Take(holds), s.Listen(a)
		for range 3 {
			if got, err := waits.TryLock(t.Context(), 0); got || err != nil {
				t.Fatalf("TryLock = %v, %v", got, err)
			}
		}
		wantWanted(t, "after TryLock", h, false)
		if got, err := waits.TryLock(t.Context(), time.Millisecond); got || err != nil {
			t.Fatalf("TryLock = %v, %v", got, err)
		}
		wantWanted(t, "after TryLock with a wait", h, true)
		if n := wants(heard()); n != 1 {
			t.Errorf("%d messages, want one", n)
		}
		rig.End(t, h)
	})
}

// The lease of a fixed hold is not renewed: nothing repairs a lost message.
func TestALostMessageIsMadeUpForByTheNextRenewal(t *testing.T) {
	eachWanted(t, func(t *testing.T, s *rig.Lab, a, _ *rig.Actor, holds, waits *relock.Lock) {
		h := s.Take(holds)
		a.Link.HoleSubscribers()
		waiter := s.Begin(waits)
		waiter.Waits()
		wantWanted(t, "with the message lost", h, false)
		s.Until(s.Now() + 10*time.Second)
		wantWanted(t, "after a renewal", h, !strings.Contains(t.Name(), "fixed"))
		rig.Must(t, h.Release())
		rig.End(t, waiter.Returns())
	})
}

// So many locks are renewed by one command. One of them is waited for.
func TestALostMessageIsMadeUpForByARenewalOfMany(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		var all []*relock.Hold
		for i := range 20 {
			all = append(all, s.Take(a.NewLock(fmt.Sprint("l", i))))
		}
		a.Link.HoleSubscribers()
		waiter := s.Begin(b.NewLock("l7"))
		s.Until(s.Now() + 10*time.Second)
		for i, h := range all {
			wantWanted(t, fmt.Sprint("lock ", i), h, i == 7)
			rig.Must(t, h.Release())
		}
		rig.End(t, waiter.Returns())
	})
}

func TestSixtyFourWaitersMakeOneMessage(t *testing.T) {
	eachWanted(t, func(t *testing.T, s *rig.Lab, a, b *rig.Actor, holds, waits *relock.Lock) {
		s.WaitOnce(b) // a request without an echo takes the usual way
		h, heard := s.Take(holds), s.Listen(a)
		var calls []*rig.Call
		for i := range 32 {
			calls = append(calls, s.Begin(waits), s.BeginAs(fmt.Sprint("owner ", i), waits))
		}
		wantWanted(t, "by many", h, true)
		if n := wants(heard()); n != 1 {
			t.Errorf("%d messages for 64 waiters, want one", n)
		}
		for _, c := range calls {
			c.Stop()
			<-c.Done
		}
		rig.End(t, h)
	})
}

func TestWhileNobodyWaitsNothingIsSent(t *testing.T) {
	eachWanted(t, func(t *testing.T, s *rig.Lab, a, _ *rig.Actor, holds, _ *relock.Lock) {
		heard := s.Listen(a)
		count := func() (n int) {
			for range 100 {
				h := s.Take(holds)
				h.Wanted()
				rig.End(t, h)
			}
			return len(a.Link.Log())
		}
		before := len(a.Link.Log())
		if n := count() - before; n != 200 {
			t.Errorf("%d commands for 100 holds, want 200", n)
		}
		if got := heard(); len(got) != 0 {
			t.Errorf("heard %q", got)
		}
	})
}

// Two wait. The first of them is granted the lock while the second still waits.
func TestTheNextHolderIsWantedAtOnceIfOthersStillWait(t *testing.T) {
	eachWanted(t, func(t *testing.T, s *rig.Lab, a, b *rig.Actor, holds, waits *relock.Lock) {
		h := s.Take(holds)
		first := s.Begin(waits)
		var second *rig.Call
		if strings.Contains(t.Name(), "by_a_reader") { // readers are let in together
			second = s.Begin(b.NewRWLock("l").WLocker())
		} else {
			second = s.Begin(waits)
		}
		second.Waits()
		rig.End(t, h)
		next := first.Holds()
		wantWanted(t, "while another waits", next, true)
		rig.End(t, next)
		last := second.Holds()
		wantWanted(t, "when nobody waits any more", last, false)
		rig.End(t, last)
		again := s.Take(waits)
		wantWanted(t, "the lock was free", again, false)
		rig.End(t, again)
	})
}

func TestReadersAreWantedOnlyByAWriter(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b, c := s.Actor(), s.Actor(), s.Actor()
		heard := s.Listen(a)
		var readers []*relock.Hold
		for range 5 {
			readers = append(readers, s.Take(a.NewRWLock("l").RLocker()))
		}
		named := s.BeginAs("me", c.NewRWLock("l").RLocker()).Holds()
		for _, h := range readers {
			wantWanted(t, "beside readers", h, false)
		}
		writer := s.Begin(b.NewRWLock("l").WLocker())
		late := s.Begin(b.NewRWLock("l").RLocker())
		late.Waits()
		for _, h := range readers {
			wantWanted(t, "while a writer waits", h, true)
			rig.End(t, h)
		}
		if n := wants(heard()); n != len(readers) {
			t.Errorf("%d messages to %d readers", n, len(readers))
		}
		inner := s.BeginAs("me", c.NewRWLock("l").RLocker()).Holds()
		wantWanted(t, "past the writer", inner, true)
		elsewhere := s.BeginAs("me", a.NewRWLock("l").RLocker()).Holds()
		wantWanted(t, "past the writer, in another client", elsewhere, true)
		rig.End(t, elsewhere)
		rig.End(t, inner)
		rig.End(t, named)
		w := writer.Holds()
		wantWanted(t, "while a reader waits", w, true)
		rig.End(t, w)
		wantWanted(t, "the last", late.Holds(), false)
		rig.End(t, late.Hold)
	})
}

// Readers are let in together: none of them waits for another.
func TestReadersWhoAreLetInTogetherDoNotWantEachOther(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b, c := s.Actor(), s.Actor(), s.Actor()
		w := s.Take(a.NewRWLock("l").WLocker())
		var readers []*rig.Call
		for range 3 {
			readers = append(readers, s.Begin(b.NewRWLock("l").RLocker()), s.Begin(c.NewRWLock("l").RLocker()))
		}
		rig.End(t, w)
		for _, r := range readers {
			wantWanted(t, "a reader", r.Holds(), false)
		}
		for _, r := range readers {
			rig.End(t, r.Hold)
		}
	})
}

// Calls of one client wait in a line of their own, of which Redis knows only the first.
func TestHolderIsWantedByAnotherCallOfItsOwnClient(t *testing.T) {
	for _, opts := range [][]relock.LockOption{nil, {relock.Fair()}} {
		rig.Play(t, func(t *testing.T, s *rig.Lab) {
			a := s.Actor()
			l := a.NewLock("l", opts...)
			h := s.Take(l)
			var calls []*rig.Call
			for range 3 {
				calls = append(calls, s.Begin(l))
			}
			s.Until(s.Now() + time.Second) // tokens are time: a run needs several
			wantWanted(t, "the first", h, true)
			for i, c := range calls {
				rig.End(t, h)
				h = c.Holds()
				wantWanted(t, fmt.Sprint("call ", i), h, i < len(calls)-1)
			}
			rig.End(t, h)
		})
	}
}

// lastOfARun returns a hold that was passed on within its client, and a handle of another client.
func lastOfARun(t *testing.T, s *rig.Lab) (h *relock.Hold, other *relock.Lock) {
	t.Helper()
	l, other := s.Actor().NewLock("l", relock.Fair()), s.Actor().NewLock("l", relock.Fair())
	first, second, third := s.Take(other), s.Begin(l), s.Begin(l)
	s.Until(s.Now() + time.Second) // tokens are time: a run needs several
	rig.End(t, first)
	rig.End(t, second.Holds())
	return third.Holds(), other
}

// The lock was passed on within the client, whose place in Redis' queue the others still see.
func TestAWaiterBehindThoseOfTheHoldersClientWantsWithTheNextRenewal(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		h, other := lastOfARun(t, s)
		wantWanted(t, "the last of a run", h, false)
		waiter := s.Begin(other)
		waiter.Waits()
		s.Until(s.Now() + 10*time.Second)
		wantWanted(t, "after a renewal", h, true)
		rig.End(t, h)
		rig.End(t, waiter.Returns())
	})
}

// A waiter that has left does not want the holds that come after the next renewal.
func TestANestedHoldIsWantedWhileSomebodyWaits(t *testing.T) {
	for _, opts := range [][]relock.LockOption{nil, {relock.Fair()}, {relock.LocalReentry()}} {
		rig.Play(t, func(t *testing.T, s *rig.Lab) {
			a, b := s.Actor(), s.Actor()
			l := a.NewLock("l", opts...)
			outer := s.BeginAs("me", l).Holds()
			before := s.BeginAs("me", l).Holds()
			waiter := s.Begin(b.NewLock("l", opts...))
			waiter.Waits()
			wantWanted(t, "the outer", outer, true)
			wantWanted(t, "a nested one from before", before, true)
			later := s.BeginAs("me", l).Holds()
			wantWanted(t, "a later nested one", later, true)
			elsewhere := s.BeginAs("me", b.NewLock("l", opts...)).Holds()
			wantWanted(t, "in another client", elsewhere, true)
			rig.End(t, elsewhere)
			rig.End(t, later)
			waiter.Stop()
			<-waiter.Done
			s.Until(s.Now() + 11*time.Second)
			last := s.BeginAs("me", l).Holds()
			wantWanted(t, "after the waiter has left", last, false)
			again := s.Begin(b.NewLock("l", opts...))
			again.Waits()
			wantWanted(t, "by another waiter", last, true)
			rig.End(t, last)
			rig.End(t, before)
			rig.End(t, outer)
			rig.End(t, again.Holds())
		})
	}
}

func TestABranchWantsItsSiblingAndNotItsAncestor(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b, c := s.Actor(), s.Actor(), s.Actor()
		flow := relock.WithOwner(t.Context(), "flow")
		one, two := relock.WithChildOwner(flow), relock.WithChildOwner(flow)
		begin := func(p *rig.Actor, ctx context.Context) *rig.Call {
			id, _ := relock.OwnerFrom(ctx)
			return s.BeginAs(id, p.NewLock("l"))
		}
		root, first, heard := begin(a, flow).Holds(), begin(b, one).Holds(), s.Listen(a)
		below := begin(c, relock.WithChildOwner(one)).Holds()
		second := begin(c, two)
		second.Waits()
		wantWanted(t, "the flow, by its branch", root, false)
		wantWanted(t, "the sibling", first, true)
		wantWanted(t, "what has entered by the sibling", below, true)
		s.Until(s.Now() + 11*time.Second)
		wantWanted(t, "the flow, by its branch, after a renewal", root, false)
		stranger := s.Begin(b.NewLock("l"))
		stranger.Waits()
		wantWanted(t, "the flow, by a stranger", root, true)
		third := begin(c, relock.WithChildOwner(flow))
		third.Waits()
		if n := wants(heard()); n != 1 {
			t.Errorf("%d messages to the flow, want one: of the stranger", n)
		}
		third.Stop()
		<-third.Done
		rig.End(t, below)
		rig.End(t, first)
		wantWanted(t, "the next branch, by the stranger", second.Holds(), true)
		rig.End(t, second.Hold)
		rig.End(t, root)
		wantWanted(t, "the stranger", stranger.Holds(), false)
		rig.End(t, stranger.Hold)
	})
}

func TestASignalledWaiterWantsTheLock(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		waits := b.NewLock("l")
		held := s.Take(waits)
		done := rig.Beside(func() error { return waits.NewCond("c").Wait(held.Context(t.Context())) })
		synctest.Wait()
		l := a.NewLock("l")
		h := s.Take(l)
		wantWanted(t, "before the signal", h, false)
		rig.Must(t, l.NewCond("c").Signal(h.Context(t.Context())))
		wantWanted(t, "after the signal", h, true)
		rig.End(t, h)
		rig.Must(t, rig.Returned(t, done))
		wantWanted(t, "the waiter's own", held, false)
		rig.End(t, held)
	})
}

func TestAResumedHoldIsWantedIfSomebodyWaits(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		h := s.Take(a.NewLock("l"))
		ticket, err := h.Detach(t.Context(), time.Minute)
		rig.Must(t, err)
		waiter := s.Begin(b.NewLock("l"))
		waiter.Waits()
		resumed, err := a.Resume(t.Context(), ticket)
		rig.Must(t, err)
		wantWanted(t, "the hold that was handed over", h, false)
		wantWanted(t, "the resumed one", resumed, true)
		rig.End(t, resumed)
		rig.End(t, waiter.Holds())
	})
}

// A message may come twice, and for what is not held any more.
func TestWantedIsClosedOnce(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a := s.Actor()
		h := s.Take(a.NewLock("l"))
		h.Wanted()
		say := func() {
			s.Redis.Publish(t.Context(), key.Inbox("relock", rig.ID(a.Client)), "wanted "+rig.Nonce(h))
			synctest.Wait()
		}
		say()
		say()
		wantWanted(t, "after two messages", h, true)
		rig.End(t, h)
		say()
		var none *relock.Hold
		if none.Wanted() != nil || new(relock.Hold).Wanted() != nil {
			t.Error("a hold that nobody made is wanted")
		}
	})
}

// With ShardedPubSub a lock's channel is subscribed while somebody listens, and no longer.
func TestAShardedHolderListensFromItsFirstWantedToItsEnd(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		shard := s.Server.Shard()
		a, b := s.Actor(relock.ShardedPubSub()), s.Actor(relock.ShardedPubSub())
		h := s.Take(a.NewLock("l"))
		s.Until(s.Now() + 10*time.Second)
		if n := shard.Channels(); n != 0 {
			t.Fatalf("%d channels before Wanted", n)
		}
		h.Wanted()
		s.Until(s.Now() + time.Minute)
		if n := shard.Channels(); n != 1 {
			t.Errorf("%d channels while the holder listens, want 1", n)
		}
		waiter := s.Begin(b.NewLock("l"))
		waiter.Waits()
		wantWanted(t, "sharded", h, true)
		rig.End(t, h)
		rig.End(t, waiter.Holds())
		s.Until(s.Now() + 10*time.Second)
		if n := shard.Channels(); n != 0 {
			t.Errorf("%d channels after the release", n)
		}
	})
}

// A hold that is wanted already has nothing to listen for.
func TestAShardedHolderThatIsWantedDoesNotListen(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		shard := s.Server.Shard()
		h := s.Take(s.Actor(relock.ShardedPubSub()).NewLock("l"))
		waiter := s.Begin(s.Actor().NewLock("l"))
		waiter.Waits()
		s.Until(s.Now() + 11*time.Second) // a renewal
		wantWanted(t, "renewed", h, true)
		s.Until(s.Now() + 10*time.Second)
		if n := shard.Channels(); n != 0 {
			t.Errorf("%d channels while the hold is wanted, want none", n)
		}
		rig.End(t, h)
		rig.End(t, waiter.Holds())
	})
}
