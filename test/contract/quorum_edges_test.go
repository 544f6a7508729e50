package contract_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/internal/wire"
)

func TestQuorumOfANamedOwnerReenters(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := newPrimaries(x, 3)
		q, _ := p.process()
		l := q.NewLock("a")
		rig.Must(t, l.Do(x.By("me"), func(ctx context.Context) error {
			ran, err := p.lock("a").TryDo(ctx, 0, func(context.Context) error { return nil })
			if !ran {
				t.Error("the nested call waits for its own owner")
			}
			return err
		}))
		rig.WantIs(t, l.Do(t.Context(), func(ctx context.Context) error { return q.NewLock("a").Lock(ctx) }), relock.ErrDeadlock)
		you := q.NewLock("a", relock.Owner("you"))
		rig.WantIs(t, l.Do(t.Context(), func(ctx context.Context) error { _, err := you.TryLock(ctx, time.Second); return err }), relock.ErrDeadlock)
		rig.Must(t, l.Do(t.Context(), func(ctx context.Context) error {
			return newPrimaries(x, 3).lock("a").Do(ctx, func(context.Context) error { return nil }) // another lock of the name
		}))
		rig.Must(t, l.Do(t.Context(), func(ctx context.Context) error {
			return q.NewLock("b").Do(ctx, func(context.Context) error { return nil })
		}))
		rig.Must(t, take(t, p.lock("a")).Release())
	})
}

func TestQuorumUnlocksOncePerSuccess(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := newPrimaries(x, 3).lock("a")
		ctx := x.By("me")
		h, err := l.Acquire(ctx)
		rig.Must(t, err)
		rig.Must(t, l.Lock(ctx))
		if l.HoldCount() != 2 {
			t.Errorf("%d holds, want 2", l.HoldCount())
		}
		rig.Must(t, l.Unlock())
		rig.Must(t, h.Err())
		rig.Must(t, l.Lock(ctx))
		newest, err := l.Acquire(ctx)
		rig.Must(t, err)
		rig.Must(t, l.Unlock())
		rig.Must(t, newest.Err()) // it is of Acquire, and there was one of Lock
		rig.Must(t, newest.Release())
		rig.Must(t, l.Unlock()) // there is no other
		rig.WantIs(t, h.Err(), relock.ErrNotHeld)
		rig.WantIs(t, l.Unlock(), relock.ErrNotHeld)
		if l.Token() != 0 || l.Lost() != nil {
			t.Errorf("token %d, Lost %v of a handle without holds", l.Token(), l.Lost())
		}
	})
}

func TestQuorumGivesUpWhenItsContextEnds(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := newPrimaries(x, 3)
		h := take(t, p.lock("a"))
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			began := x.Now()
			_, err := p.lock("a").Acquire(ctx)
			rig.WantIs(t, err, context.DeadlineExceeded)
			if took := x.Now() - began; took != 3*time.Second {
				t.Errorf("took %v, want the 3 s of the context", took)
			}
			cancel()
			_, err = p.lock("a").TryAcquire(t.Context(), time.Second)
			rig.WantIs(t, err, relock.ErrNotAcquired)
			rig.WantIs(t, p.lock("a").Lock(ctx), context.DeadlineExceeded)
		}
		rig.Must(t, h.Release())
		synctest.Wait()
		got, err := p.lock("a").TryLock(t.Context(), 0)
		if !got || err != nil {
			t.Errorf("TryLock = %v, %v: those who gave up have left something", got, err)
		}
	})
}

// The wait ends in the very instant in which the pause between two attempts does, of which the
// first was told by a majority that the lock is taken.
// Fails when that call says that Redis has not answered.
func TestQuorumThatWasTakenSaysSoThoughTheWaitEndsInAPause(t *testing.T) {
	const patience = 500 * time.Millisecond // of an attempt that has the first primary
	for range 20 {
		pause := time.Duration(0) // of a bubble, whose clock begins where every other's does
		for range 2 {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				p := newPrimaries(x, 3)
				for _, srv := range p.all[1:] {
					rig.Must(t, x.ClientOver(srv.Client(t)).NewLock("a", relock.Fair()).Lock(t.Context()))
				}
				wait := patience + pause
				time.AfterFunc(patience, func() { pause = transport.Backoff(1) })
				got, err := p.lock("a").TryLock(t.Context(), wait)
				if got || err != nil {
					t.Errorf("TryLock for %v = %v, %v; want that it is taken", wait, got, err)
				}
			})
		}
	}
}

// Without a watchdog no primary is taken again.
// Fails when the loss of a majority waits for the next look of the keeper.
func TestQuorumIsLostWithItsMajority(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := newPrimaries(x, 3)
		l := p.lock("a", relock.NoWatchdog())
		rig.Must(t, l.Lock(t.Context()))
		lost := l.Lost()
		synctest.Wait()
		at := x.Now()
		for i, srv := range p.all[:2] {
			c := x.ClientOver(srv.Client(t))
			_, err := c.NewLock("a").ForceUnlock(t.Context())
			rig.Must(t, err)
			synctest.Wait()
			if i == 0 && l.HoldCount() != 1 {
				t.Error("lost with a minority")
			}
		}
		select {
		case <-lost:
		case <-time.After(time.Minute):
			t.Fatal("the loss is not told")
		}
		if x.Now() != at {
			t.Errorf("lost after %v", x.Now()-at)
		}
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
	})
}

func TestQuorumThatCannotBeIsRefused(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		a, b := x.Client(), x.Client()
		for what, clients := range map[string][]*relock.Client{
			"none": nil, "one": {a}, "nil": {a, nil}, "a zero client": {a, new(relock.Client)}, "one twice": {a, b, a},
		} {
			if _, err := relock.NewQuorum(clients...); !errors.Is(err, relock.ErrInvalidOption) {
				t.Errorf("%s: %v, want ErrInvalidOption", what, err)
			}
		}
		q, _ := newPrimaries(x, 3).process()
		for what, row := range map[string]struct {
			l    *relock.QuorumLock
			want error
		}{
			"name": {q.NewLock("a\nb"), relock.ErrInvalidName}, "option": {q.NewLock("a", relock.TTL(-1)), relock.ErrInvalidOption},
			"nil quorum": {(*relock.Quorum)(nil).NewLock("a"), relock.ErrInvalidOption},
		} {
			_, try := row.l.TryLock(t.Context(), time.Second)
			for call, err := range map[string]error{"Lock": row.l.Lock(t.Context()), "TryLock": try, "Unlock": row.l.Unlock()} {
				if !errors.Is(err, row.want) {
					t.Errorf("%s of a bad %s: %v, want %v", call, what, err, row.want)
				}
			}
		}
		rig.WantIs(t, q.NewLock("a").Lock(nil), relock.ErrInvalidOption) //nolint:staticcheck // nil is what is tested
	})
}

// A primary whose client is closed is one that does not answer; a majority of them ends a call.
func TestQuorumWithClosedClients(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := newPrimaries(x, 3)
		var clients []*relock.Client
		for _, srv := range p.all {
			clients = append(clients, x.ClientOver(srv.Client(t)))
		}
		q, err := relock.NewQuorum(clients...)
		rig.Must(t, err)
		l := q.NewLock("a")
		rig.Must(t, clients[0].Close())
		h := take(t, l)
		rig.Must(t, h.Err())
		rig.Must(t, clients[1].Close())
		<-h.Lost()
		rig.WantIs(t, h.Err(), relock.ErrLost, relock.ErrClosed)
		rig.WantIs(t, h.Release(), relock.ErrLost, relock.ErrClosed)
		rig.WantIs(t, l.Lock(t.Context()), relock.ErrClosed)
	})
}

// A pair is done when a majority has answered: the last primary is still asked then.
// Fails when that request is cut short, which costs its connection.
func TestQuorumPairsKeepTheirConnections(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		q, links := newPrimaries(x, 3).process()
		l := q.NewLock("a")
		links[2].Latency(5 * time.Millisecond)
		var before int
		for i := range 20 {
			if i == 1 {
				before = links[2].Dials()
			}
			rig.Must(t, l.Lock(t.Context()))
			rig.Must(t, l.Unlock())
			virtual.Sleep(100 * time.Millisecond)
		}
		if n := links[2].Dials() - before; n > 1 {
			t.Errorf("%d connections were made in 19 pairs", n)
		}
	})
}

// Fails when the owner is that of whichever primary comes first: one may be gone for a while.
func TestQuorumHoldHasTheOwnerOfItsTokenThroughout(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := newPrimaries(x, 3)
		h := take(t, p.lock("a"))
		owner := h.Owner()
		if digits := wire.Token(0, owner); owner == "" || h.Token()%1000 != digits {
			t.Errorf("token %d, owner %q, whose digits are %d", h.Token(), owner, digits)
		}
		for _, srv := range p.all {
			srv.FlushAll()
			virtual.Sleep(time.Minute)
			rig.Must(t, h.Err())
			if h.Owner() != owner {
				t.Errorf("owner %q, want %q", h.Owner(), owner)
			}
		}
		rig.Must(t, h.Release())
	})
}

// Fails when a token that a primary is told of is kept in another unit than its own: whether
// the two meet by chance depends on the date.
func TestQuorumTokenOfANestedHoldIsTheOuterOnesWhateverTheDate(t *testing.T) {
	for _, days := range []int{0, 100, 150, 200} {
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			p := newPrimaries(x, 3)
			for i, srv := range p.all { // no two give out one instant
				srv.StepClock(time.Duration(days)*24*time.Hour + time.Duration(i)*time.Millisecond)
			}
			q, links := p.process()
			outer, err := q.NewLock("a").Acquire(x.By("me"))
			rig.Must(t, err)
			virtual.Sleep(time.Second)
			inner, err := q.NewLock("a").Acquire(x.By("me"))
			rig.Must(t, err)
			if inner.Token() != outer.Token() || inner.Owner() != "me" {
				t.Errorf("%d days later the nested hold's token is %d of %q, and the outer one's %d", days, inner.Token(), inner.Owner(), outer.Token())
			}
			rig.Must(t, inner.Release())
			rig.Must(t, outer.Release())
			for _, link := range links { // no counter has been raised to what nobody was given
				heal := link.Hole()
				next := take(t, q.NewLock("a"))
				rig.WantLater(t, outer.Token(), next.Token())
				if gap := time.Duration(next.Token() - outer.Token()); gap > time.Hour {
					t.Errorf("%d days later the next token is later by %v", days, gap)
				}
				rig.Must(t, next.Release())
				heal()
				virtual.Sleep(10 * time.Second)
			}
		})
	}
}
