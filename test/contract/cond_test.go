package contract_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/script"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/internal/wire"
	"github.com/relock-go/relock/lua"
)

// onCondition fails the test unless these wait on the condition.
func onCondition(t *testing.T, c *relock.Cond, want int) {
	t.Helper()
	all, err := c.Waiters(t.Context())
	rig.Must(t, err)
	if len(all) != want {
		t.Fatalf("%d wait on the condition, want %d", len(all), want)
	}
}

func TestSignalWakesTheLongestWaiter(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		a, b, c := x.Lock("l"), x.Lock("l"), x.Lock("l")
		ha, ca := rig.MustAcquire(t, a), a.NewCond("c")
		before := ha.Token()
		one := x.Sleeps(t.Context(), ca, 0)
		rig.WantIs(t, ha.Err(), relock.ErrNotHeld)
		hb := rig.MustAcquire(t, b)
		virtual.Sleep(time.Minute) // heartbeats keep both their places
		two := x.Sleeps(t.Context(), b.NewCond("c"), 0)
		onCondition(t, ca, 2)
		hc := rig.MustAcquire(t, c)
		rig.Must(t, c.NewCond("c").Signal(t.Context()))
		onCondition(t, ca, 1)
		one.Waits()
		rig.End(t, hc)
		one.Woken()
		two.Waits()
		rig.Must(t, ha.Err())
		rig.WantLater(t, before, hc.Token(), ha.Token())
		rig.Must(t, ca.Signal(t.Context()))
		rig.End(t, ha)
		two.Woken()
		rig.End(t, hb)
		rig.WantBare(t, x.Redis, "l")
	})
}

func TestWaitThatEndsWithoutASignalHoldsTheLock(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		a, b := x.Lock("l"), x.Lock("l")
		rig.Must(t, a.Lock(t.Context()))
		one := x.Sleeps(t.Context(), a.NewCond("c"), time.Second)
		rig.Must(t, b.Lock(t.Context()))
		x.Until(2 * time.Second)
		one.Waits()
		onCondition(t, a.NewCond("c"), 0)
		rig.Must(t, b.Unlock())
		one.Ended(nil)
		ctx, cancel := context.WithCancel(t.Context())
		two := x.Sleeps(ctx, a.NewCond("c"), 0)
		two.Waits()
		cancel()
		two.Ended(context.Canceled)
		rig.Must(t, a.Unlock())
		rig.WantBare(t, x.Redis, "l")
	})
}

// The time of a wait has passed, and Redis does not answer: after a TTL the lock counts as lost.
func TestWaitWhoseRedisFallsSilentIsLost(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := parties(x, 2)
		rig.Must(t, p[0].l.Lock(t.Context()))
		s := x.Sleeps(t.Context(), p[0].c, time.Second)
		rig.Must(t, p[1].l.Lock(t.Context()))
		virtual.Sleep(5 * time.Second)
		s.Waits()
		p[0].Link.Cut()
		s.Ended(relock.ErrLost)
		rig.WantIs(t, p[0].l.Unlock(), relock.ErrLost)
		rig.Must(t, p[1].l.Unlock())
	})
}

// A page of waiters begins where the one before has said, also where who stood there has
// been signalled since, or has given up.
func TestPagesOfWaitersGoOnWhereSomebodyHasLeft(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := parties(x, 6)
		var sleeps []*rig.Sleep
		for _, one := range p[:5] {
			sleeps = append(sleeps, one.sleeps(x))
			virtual.Sleep(time.Second)
		}
		n, third := page(x, "", 2)
		if n != 2 || third == "" {
			t.Fatalf("the first page has %d, and the next begins at %q", n, third)
		}
		sleeps[2].Stop()
		sleeps[2].Ended(context.Canceled)
		rig.Must(t, p[2].l.Unlock())
		if n, next := page(x, third, 2); n != 2 || next != "" {
			t.Errorf("the page after who gave up has %d, and the next begins at %q", n, next)
		}
		rig.Must(t, p[5].l.Lock(t.Context()))
		holds := p[5]
		for _, next := range []int{0, 1, 3, 4} { // who has left is missed by nobody
			rig.Must(t, holds.c.Signal(t.Context()))
			rig.Must(t, holds.l.Unlock())
			sleeps[next].Woken()
			holds = p[next]
		}
		rig.Must(t, holds.l.Unlock())
		rig.WantBare(t, x.Redis, "l")
	})
}

// Also where who stood there waits anew, behind all others, by the same hold.
func TestPagesOfWaitersPassNobodyOverWhereOneWaitsAnew(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := parties(x, 4)
		sleep := func(one condParty) *rig.Sleep {
			s := one.sleeps(x)
			virtual.Sleep(time.Second)
			return s
		}
		sleeps := []*rig.Sleep{sleep(p[0]), sleep(p[1]), sleep(p[2]), sleep(p[3])}
		first, second := page(x, "", 1)
		if first != 1 || second == "" {
			t.Fatalf("the first page has %d, and the next begins at %q", first, second)
		}
		sleeps[1].Stop()
		sleeps[1].Ended(context.Canceled)
		sleeps[1] = x.Sleeps(t.Context(), p[1].c, 0)
		sleeps[1].Waits()
		if n, next := page(x, second, 3); n != 3 || next != "" {
			t.Errorf("the page after one that waits anew has %d of the three that wait, and the next begins at %q", n, next)
		}
	})
}

// Waiters that died are on the chain of their condition until somebody sweeps it.
// Fails when one script goes over all of them: the server does nothing else meanwhile.
func TestReadingWhoWaitsGoesOverAFewOfTheDeadAtATime(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		const dead = 1300
		hash, name := key.For("relock", "l").Hash, func(i int) string { return fmt.Sprintf("%032d", i) }
		fields := []any{"c:c", name(0) + " " + name(dead)}
		for i := range dead + 1 {
			deadline, before, after := "1", "-", "-"
			if i > 0 {
				before = name(i - 1)
			}
			if i < dead {
				after = name(i + 1)
			} else {
				deadline = fmt.Sprint(time.Now().Add(time.Hour).UnixMilli())
			}
			fields = append(fields, "w:"+name(i), deadline+" 1 0 1 1 0 1000 1 "+name(i)+" x o:me", "i:"+name(i), "0 "+before+" "+after+" c")
		}
		rig.Must(t, x.Redis.HSet(t.Context(), hash, fields...).Err())
		rig.Must(t, x.Redis.PExpire(t.Context(), hash, time.Hour).Err())
		pages := 0
		for found, next := 0, ""; ; pages++ {
			n, more := page(x, next, 500)
			if found += n; more == "" {
				if found != 1 {
					t.Errorf("the pages have %d waiters, want the one that lives", found)
				}
				break
			}
			next = more
		}
		if pages < dead/500 {
			t.Errorf("%d further pages for %d dead waiters", pages, dead)
		}
		if all, err := x.Lock("l").NewCond("c").Waiters(t.Context()); err != nil || len(all) != 1 {
			t.Errorf("waiters %v, error %v, want one", all, err)
		}
	})
}

// page reads so many of those who wait on "c" of the lock "l", from where a page before has said.
func page(x *rig.Lab, from string, size int) (n int, next string) {
	x.T.Helper()
	read := script.MustLoad(lua.FS, "awaiting").Source
	raw, err := x.Redis.Eval(x.T.Context(), read, []string{key.For("relock", "l").Hash}, "c", from, size).Slice()
	rig.Must(x.T, err)
	all, next, err := wire.DecodeAwaiting(raw)
	rig.Must(x.T, err)
	return len(all), next
}
