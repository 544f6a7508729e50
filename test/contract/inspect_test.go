package contract_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

func TestInfoOfANameNobodyUses(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a")
		info, err := l.Info(t.Context())
		rig.Must(t, err)
		if info.Kind != "" || len(info.Holders) != 0 || info.Waiters != 0 {
			t.Errorf("Info = %+v, want nothing", info)
		}
		if w := x.Waiters(l); w != nil {
			t.Errorf("waiters %#v, want nil", w)
		}
		if w, err := l.NewCond("c").Waiters(t.Context()); w != nil || err != nil {
			t.Errorf("waiters on a condition %#v, %v, want nil, nil", w, err)
		}
		if forced, err := l.ForceUnlock(t.Context()); forced || err != nil {
			t.Errorf("ForceUnlock = %v, %v, want false, nil", forced, err)
		}
		if keys := x.Server.Direct().Keys(); len(keys) != 0 {
			t.Errorf("keys %v, want none: looking leaves no trace", keys)
		}
	})
}

func TestInfoTellsHolderAndWaiters(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l, there := x.Lock("a"), x.Lock("a")
		rig.Must(t, l.Lock(x.By("me")))
		rig.Must(t, there.Lock(x.By("me")))
		rig.Must(t, l.Lock(x.By("me")))
		for _, name := range []string{"x", "y"} {
			go func() { _ = there.Lock(x.By(name)) }()
			synctest.Wait()
		}
		virtual.Sleep(4 * time.Second)
		info, err := x.Lock("a").Info(t.Context())
		rig.Must(t, err)
		if info.Waiters != 2 || len(info.Holders) != 1 || info.Kind == "" {
			t.Fatalf("Info = %+v, want one holder and two waiters", info)
		}
		want := relock.Holder{Owner: "me", Holds: 3, Token: l.Token(), TTL: 26 * time.Second, Held: 4 * time.Second}
		if info.Holders[0] != want {
			t.Errorf("holder %+v, want %+v", info.Holders[0], want)
		}
		rig.Must(t, l.Unlock())
		x.Holders(l, "me", 2)
	})
}

// TestWaitersAreToldInOrder: the order of their arrival, with their age, over
// several processes, and it outlives the heartbeats.
func TestWaitersAreToldInOrder(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a")
		clients := []*relock.Client{x.Client(), x.Client(), x.Client()}
		rig.Must(t, l.Lock(t.Context()))
		want := []string{"e", "b", "d", "a", "c"}
		began := time.Now()
		for i, owner := range want {
			go func() { _ = clients[i%3].NewLock("a", relock.TTL(5*time.Second)).Lock(x.By(owner)) }()
			synctest.Wait()
			virtual.Sleep(1001 * time.Millisecond)
		}
		virtual.Sleep(time.Minute)
		x.Waits(l, want...)
		for i, w := range x.Waiters(l) {
			joined := began.Add(time.Duration(i) * 1001 * time.Millisecond)
			if w.Read || w.Age != time.Since(joined) {
				t.Errorf("waiter %+v, want the age %v", w, time.Since(joined))
			}
		}
		rig.Must(t, l.Unlock())
		x.Waits(l, want[1:]...)
		x.Holders(l, "e", 1)
	})
}

// TestLongQueueIsReadWhole: it is read in pages. The virtual server would take
// its time over that many scripts.
func TestLongQueueIsReadWhole(t *testing.T) {
	c, err := relock.New(redistest.Real(t).Client(t))
	rig.Must(t, err)
	defer func() { _ = c.Close() }()
	l := c.NewLock("a")
	rig.Must(t, l.Lock(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const long = 1203
	for range long {
		go func() { _ = l.Lock(relock.WithNewOwner(ctx)) }()
	}
	for n := 0; n < long; {
		info, err := l.Info(ctx)
		rig.Must(t, err)
		n = info.Waiters
	}
	all, err := l.Waiters(ctx)
	rig.Must(t, err)
	seen := map[string]bool{}
	for i, w := range all {
		seen[w.Owner] = true
		if i > 0 && w.Age > all[i-1].Age+time.Second {
			t.Errorf("waiter %d has the age %v, the one before %v", i, w.Age, all[i-1].Age)
		}
	}
	if len(all) != long || len(seen) != long {
		t.Errorf("%d waiters, %d owners, want %d", len(all), len(seen), long)
	}
}

// TestAnonymousCallsOfAProcessWaitAsOne: they stand in a line of their own.
func TestAnonymousCallsOfAProcessWaitAsOne(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l, here := x.Lock("a"), x.Lock("a")
		rig.Must(t, l.Lock(t.Context()))
		for range 5 {
			go func() { _ = here.Lock(t.Context()) }()
			synctest.Wait()
		}
		if all := x.Waiters(l); len(all) != 1 {
			t.Errorf("%d waiters, want 1", len(all))
		}
	})
}

func TestForceUnlockEndsTheGrantAndTellsItsHolders(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, operator, next := x.Client(), x.Lock("a"), x.Lock("a")
		l, there := c.NewLock("a"), x.Lock("a")
		// The inbox of a client is up once one of its calls has had to wait or asked.
		holds := []*relock.Hold{acquire(t, l, x.By("me")), acquire(t, l, x.By("me")), acquire(t, there, x.By("me"))}
		waiter := rig.Beside(func() error { return next.Lock(t.Context()) })
		rig.StillWaits(t, waiter)
		synctest.Wait()
		forced, err := operator.ForceUnlock(t.Context())
		if !forced || err != nil {
			t.Errorf("ForceUnlock = %v, %v, want true, nil", forced, err)
		}
		rig.Must(t, rig.Returned(t, waiter))
		for i, h := range holds {
			if !rig.IsShut(h.Lost()) {
				t.Errorf("hold %d has not been told", i)
			}
			rig.WantIs(t, h.Err(), relock.ErrLost)
			rig.WantIs(t, h.Release(), relock.ErrLost)
		}
		x.Refuses(operator)
		if next.Token() <= holds[0].Token() {
			t.Errorf("token %d after %d", next.Token(), holds[0].Token())
		}
		rig.Must(t, next.Unlock())
	})
}

// TestForceUnlockOfAProcessLine: those in line behind the loser get the lock.
func TestForceUnlockOfAProcessLine(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l, operator := x.Lock("a"), x.Lock("a")
		first := acquire(t, l, t.Context())
		done := make(chan *relock.Hold, 2)
		for range 2 {
			go func() { done <- acquire(t, l, t.Context()) }()
			synctest.Wait()
		}
		forced, err := operator.ForceUnlock(t.Context())
		if !forced || err != nil {
			t.Errorf("ForceUnlock = %v, %v, want true, nil", forced, err)
		}
		synctest.Wait()
		// The lost hold still occupies its handle.
		if len(done) != 0 {
			t.Error("a handle with a lost hold was given to another")
		}
		rig.WantIs(t, first.Release(), relock.ErrLost)
		for range 2 {
			rig.Must(t, (<-done).Release())
		}
		x.Frees("a")
	})
}

// TestForceUnlockWithoutMessageIsNoticedAtTheNextRenewal: the subscription is
// cut at that moment.
func TestForceUnlockWithoutMessageIsNoticedAtTheNextRenewal(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		l, operator := c.NewLock("a"), x.Lock("a")
		h := acquire(t, l, t.Context())
		synctest.Wait()
		link.HoleSubscribers()
		began := time.Now()
		forced, err := operator.ForceUnlock(t.Context())
		if !forced || err != nil {
			t.Errorf("ForceUnlock = %v, %v, want true, nil", forced, err)
		}
		x.Frees("a")
		<-h.Lost()
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("noticed after %v, want a third of the TTL at most", took)
		}
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
	})
}

// TestInspectionWorksForAnyKind: the name is in use as another kind of lock.
func TestInspectionWorksForAnyKind(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l, other := x.Client().NewLock("a", relock.Fair()), x.Lock("a")
		rig.Must(t, l.Lock(x.By("me")))
		go func() { _ = l.Lock(x.By("you")) }()
		synctest.Wait()
		rig.WantIs(t, other.Lock(t.Context()), relock.ErrKind)
		_, err := other.TryLock(t.Context(), 0)
		rig.WantIs(t, err, relock.ErrKind)
		_, err = other.TryLock(x.By("me"), time.Hour)
		rig.WantIs(t, err, relock.ErrKind)
		x.Waits(other, "you")
		info, err := other.Info(t.Context())
		rig.Must(t, err)
		if info.Kind != "fair" || info.Waiters != 1 {
			t.Errorf("Info = %+v, want a fair lock with one waiter", info)
		}
		for _, owner := range []string{"me", "you"} {
			x.Holders(other, owner, 1)
			if forced, err := other.ForceUnlock(t.Context()); !forced || err != nil {
				t.Errorf("ForceUnlock = %v, %v, want true, nil", forced, err)
			}
			synctest.Wait()
			rig.WantIs(t, l.Unlock(), relock.ErrLost)
			synctest.Wait()
		}
		// Nobody holds or waits: the name changes its kind.
		rig.Must(t, other.Lock(t.Context()))
		rig.WantIs(t, l.Lock(t.Context()), relock.ErrKind)
		rig.Must(t, other.Unlock())
	})
}
