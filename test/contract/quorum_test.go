package contract_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// primaries are servers in virtual time that know nothing of each other.
type primaries struct {
	x   *rig.Lab
	all []*redistest.Server
}

func newPrimaries(x *rig.Lab, n int) *primaries {
	p := &primaries{x: x}
	for range n {
		p.all = append(p.all, redistest.Start(x.T))
	}
	return p
}

// process returns a quorum as a process of its own has it, with its links.
func (p *primaries) process(opts ...relock.Option) (q *relock.Quorum, links []*redistest.Link) {
	p.x.T.Helper()
	var clients []*relock.Client
	for _, srv := range p.all {
		link := redistest.NewLink(p.x.T, srv.Dial)
		rdb := srv.Client(p.x.T, func(o *redis.Options) { o.Dialer = link.Dial })
		clients, links = append(clients, p.x.ClientOver(rdb, opts...)), append(links, link)
	}
	q, err := relock.NewQuorum(clients...)
	rig.Must(p.x.T, err)
	return q, links
}

func (p *primaries) lock(name string, opts ...relock.LockOption) *relock.QuorumLock {
	p.x.T.Helper()
	q, _ := p.process()
	return q.NewLock(name, opts...)
}

// take holds l, or the test fails.
func take(t *testing.T, l *relock.QuorumLock) *relock.QuorumHold {
	t.Helper()
	h, err := l.Acquire(t.Context())
	rig.Must(t, err)
	return h
}

func TestQuorumExcludesAndItsTokensGrow(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := newPrimaries(x, 3)
		a, b := p.lock("a"), p.lock("a")
		var last int64
		for range 5 {
			h := take(t, a)
			rig.WantLater(t, last, h.Token())
			last = h.Token()
			got, err := b.TryLock(t.Context(), 0)
			if got || err != nil {
				t.Errorf("TryLock beside a holder: %v, %v", got, err)
			}
			if a.HoldCount() != 1 || a.Token() != last || h.Owner() == "" || h.Name() != "a" || time.Until(h.TrustedUntil()) < 29*time.Second {
				t.Errorf("%d holds, token %d, %q %q until %v", a.HoldCount(), a.Token(), h.Owner(), h.Name(), h.TrustedUntil())
			}
			rig.Must(t, h.Release())
			rig.WantIs(t, h.Release(), relock.ErrNotHeld)
			a, b = b, a
		}
	})
}

// A minority that hangs or refuses costs nobody the lock, and a majority everybody.
func TestQuorumOutlivesAMinority(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := newPrimaries(x, 5)
		q, links := p.process()
		l := q.NewLock("a")
		h := take(t, l)
		virtual.Sleep(time.Second)
		heal := []func(){links[0].Hole(), links[3].Cut()}
		virtual.Sleep(2 * time.Minute)
		rig.Must(t, h.Err())
		rig.Must(t, h.Release())
		began := x.Now()
		h = take(t, l)
		if took := x.Now() - began; took > time.Second {
			t.Errorf("took %v beside a minority that is silent", took)
		}
		for _, f := range heal {
			f()
		}
		virtual.Sleep(time.Minute) // those that have come back are taken again
		links[1].Cut()
		links[2].Hole()
		virtual.Sleep(2 * time.Minute)
		rig.Must(t, h.Err())
		loses(t, h, links[4])
		_, err := l.TryLock(t.Context(), time.Second)
		if err == nil {
			t.Error("no error without a majority")
		}
		rig.WantNot(t, err, relock.ErrNotAcquired)
	})
}

// loses cuts off the last primary of a majority.
func loses(t *testing.T, h *relock.QuorumHold, last *redistest.Link) {
	t.Helper()
	ctx, lost := h.Context(t.Context()), h.Lost()
	last.Hole()
	virtual.Sleep(15 * time.Second) // the others have been renewed since, the last one not
	until := h.TrustedUntil()
	<-lost
	if late := time.Since(until); late < 0 || late > time.Second {
		t.Errorf("lost %v after the instant until which it was certain", late)
	}
	rig.WantIs(t, ctx.Err(), context.Canceled)
	rig.WantIs(t, context.Cause(ctx), relock.ErrLost)
	rig.WantIs(t, h.Err(), relock.ErrLost)
	rig.WantIs(t, h.Release(), relock.ErrLost)
}

// Every contender asks all primaries at one instant, over ways of different length, so
// that no two primaries have the same first. Then somebody holds after few round trips.
func TestQuorumSettlesSplitVotesInFiveRoundTrips(t *testing.T) {
	const contenders, rounds, slowest = 8, 9, 6 * time.Millisecond
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := newPrimaries(x, 5)
		rng := rand.New(rand.NewPCG(1, 2))
		var locks []*relock.QuorumLock
		for range contenders {
			q, links := p.process()
			rig.Must(t, q.NewLock("warm").Do(t.Context(), func(context.Context) error { return nil }))
			for _, l := range links {
				l.Latency(slowest - time.Duration(rng.Int64N(int64(slowest/3))))
			}
			locks = append(locks, q.NewLock("a"))
		}
		var took []time.Duration
		for range rounds {
			virtual.Sleep(time.Minute)
			took = append(took, contend(t, locks))
		}
		slices.Sort(took)
		if median := took[rounds/2]; median > 5*2*slowest {
			t.Errorf("first held after %v in the median, want within 5 round trips of %v", median, 2*slowest)
		}
		t.Logf("first held after %v", took)
	})
}

// contend has each lock held once, and says when the first was.
func contend(t *testing.T, locks []*relock.QuorumLock) time.Duration {
	t.Helper()
	var inside int
	first, done := make(chan time.Duration, len(locks)), make(chan error, len(locks))
	began := time.Now()
	for _, l := range locks {
		go func() {
			done <- l.Do(t.Context(), func(ctx context.Context) error {
				first <- time.Since(began)
				if inside++; inside != 1 {
					t.Error("two hold")
				}
				virtual.Sleep(50 * time.Millisecond)
				inside--
				return ctx.Err()
			})
		}()
	}
	for range locks {
		rig.Must(t, <-done)
	}
	return <-first
}

// Fails when a token is not written back: the next holder's majority may have seen none
// of this size, where the clocks of primaries differ.
func TestQuorumTokensGrowThoughClocksDiffer(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := newPrimaries(x, 3)
		for i, srv := range p.all {
			srv.StepClock(time.Duration(i) * time.Hour)
		}
		q, links := p.process(relock.Defaults(relock.TTL(time.Second)))
		var last int64
		for i := range 9 {
			heal := links[i%3].Hole() // another majority each time
			h := take(t, q.NewLock("a"))
			rig.WantLater(t, last, h.Token())
			last = h.Token()
			virtual.Sleep(3 * time.Second)
			rig.Must(t, h.Err()) // and no lease has become another
			rig.Must(t, h.Release())
			heal()
			virtual.Sleep(10 * time.Second)
		}
	})
}

// nestedTokens has an owner hold twice, of primaries of which the third's clock is ahead: at
// first that of the link late answers late, then that of the link gone does not.
func nestedTokens(t *testing.T, late, gone int) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := newPrimaries(x, 3)
		p.all[2].StepClock(time.Hour)
		q, links := p.process()
		links[late].Latency(10 * time.Millisecond)
		outer, err := q.NewLock("a").Acquire(x.By("me"))
		rig.Must(t, err)
		virtual.Sleep(time.Second)
		links[late].Latency(0)
		heal := links[gone].Hole()
		inner, err := q.NewLock("a").Acquire(x.By("me"))
		rig.Must(t, err)
		if inner.Token() != outer.Token() {
			t.Errorf("the nested hold's token is %d, and the outer one's %d", inner.Token(), outer.Token())
		}
		heal()
		rig.Must(t, inner.Release())
		rig.Must(t, outer.Err())
		rig.Must(t, outer.Release())
	})
}

// The primary whose token the outer hold has does not answer the nested call.
// Fails when the others give a nested hold the token that they gave at first.
func TestQuorumTokenOfANestedHoldIsNoSmallerThoughClocksDiffer(t *testing.T) { nestedTokens(t, 1, 2) }

// The primary whose clock is ahead answers when a majority has been had, and a nested call
// needs it. Fails when its own token is that call's: what has seen it refuses the outer hold.
func TestQuorumTokenOfANestedHoldIsTheOuterOnesThoughAnAheadPrimaryCameLater(t *testing.T) {
	nestedTokens(t, 2, 1)
}

// Fails when a counter that is raised lengthens the lease that was counted from it.
func TestLeaseOfADeadQuorumHolderEndsThoughClocksDiffer(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := newPrimaries(x, 3)
		for i, srv := range p.all {
			srv.StepClock(time.Duration(i) * time.Hour)
		}
		q, links := p.process(relock.Defaults(relock.TTL(time.Second)))
		var holds []*relock.QuorumHold // which primaries make a majority is chance
		for i := range 12 {
			holds = append(holds, take(t, q.NewLock(fmt.Sprint(i))))
		}
		for _, link := range links {
			link.Cut()
		}
		for i, h := range holds {
			if got, err := p.lock(fmt.Sprint(i)).TryLock(t.Context(), 3*time.Second); !got || err != nil {
				t.Errorf("TryLock = %v, %v, long after a lease of 1 s", got, err)
			}
			rig.WantIs(t, h.Err(), relock.ErrLost)
		}
	})
}

// A primary that restarts without its data, one at a time, and each hold goes on: it is
// taken again before the next.
func TestQuorumOutlivesLostDataOneByOne(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := newPrimaries(x, 3)
		l, other := p.lock("a"), p.lock("a")
		h := take(t, l)
		for range 2 {
			for _, srv := range p.all {
				srv.FlushAll()
				virtual.Sleep(30 * time.Second)
				rig.Must(t, h.Err())
				if got, err := other.TryLock(t.Context(), time.Second); got || err != nil {
					t.Fatalf("TryLock beside a holder: %v, %v", got, err)
				}
			}
		}
		rig.Must(t, h.Release())
		next := take(t, other)
		rig.WantLater(t, h.Token(), next.Token())
		rig.Must(t, next.Release())
	})
}
