package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/virtual"
)

// TestUpgradeFailsAtOnce: an owner that reads and wants to write would wait for
// itself, whichever process it asks from, and whoever else reads or waits.
func TestUpgradeFailsAtOnce(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		me, other, w := g.thread("me"), g.thread("other"), g.thread("w")
		g.ok(me.RLock(me.ctx))
		upgrade := func() {
			t.Helper()
			for _, c := range g.clients {
				th := g.threadOf(c, "me")
				began := time.Now()
				g.is(th.Lock(th.ctx), relock.ErrUpgrade)
				if took := time.Since(began); g.virtual != nil && took != 0 {
					t.Errorf("it took %v", took)
				}
				_, err := th.WLocker().TryAcquire(th.ctx, time.Minute)
				g.is(err, relock.ErrUpgrade)
			}
		}
		upgrade()
		g.ok(other.RLock(other.ctx))
		upgrade()
		writes := w.begin(w.Lock)
		g.queue("w")
		upgrade()
		g.queue("w")
		g.held("me r1", "other r1")
		g.ok(other.RUnlock())
		g.ok(me.RUnlock())
		g.ok(writes.ends())
		g.ok(w.Unlock())
	})
}

// TestUpgradeOfAnAnonymousReaderFailsAtOnce, where its context shows who it is.
func TestUpgradeOfAnAnonymousReaderFailsAtOnce(t *testing.T) {
	onBothServers(t, func(t *testing.T, g *ground) {
		rw := g.clients[0].NewRWLock(g.name)
		err := rw.RLocker().Do(t.Context(), func(ctx context.Context) error {
			g.is(rw.Lock(ctx), relock.ErrUpgrade)
			g.is(g.clients[0].NewRWLock(g.name).Lock(ctx), relock.ErrUpgrade)
			// A writer that queues between the two would block the second read for ever.
			g.is(rw.RLock(ctx), relock.ErrDeadlock)
			return nil
		})
		g.ok(err)
		err = rw.WLocker().Do(t.Context(), func(ctx context.Context) error {
			g.is(rw.Lock(ctx), relock.ErrDeadlock)
			g.is(rw.RLock(ctx), relock.ErrDeadlock)
			return nil
		})
		g.ok(err)
		g.held()
	})
}

func TestReadHoldsOfOneHandleBelongToOneOwner(t *testing.T) {
	onBothServers(t, func(t *testing.T, g *ground) {
		rw := g.clients[0].NewRWLock(g.name)
		a, b := relock.WithOwner(t.Context(), "a"), relock.WithOwner(t.Context(), "b")
		mismatch := func(ctx context.Context) {
			t.Helper()
			g.is(rw.RLock(ctx), relock.ErrOwnerMismatch)
			_, err := rw.TryRLock(ctx, 0)
			g.is(err, relock.ErrOwnerMismatch)
		}
		g.ok(rw.RLock(a))
		g.ok(rw.RLock(a))
		mismatch(b)
		mismatch(t.Context())
		g.held("a r2")
		g.ok(rw.RUnlock())
		mismatch(b)
		g.ok(rw.RUnlock())
		g.ok(rw.RLock(t.Context()))
		g.ok(rw.RLock(t.Context()))
		mismatch(a)
		g.ok(rw.RUnlock())
		g.ok(rw.RUnlock())
		g.held()
		named := g.clients[0].NewRWLock(g.name, relock.Owner("a"))
		g.is(named.RLock(b), relock.ErrOwnerMismatch)
		g.is(named.Lock(b), relock.ErrOwnerMismatch)
	})
}

// TestSidesOfAnRWLockAreLocks with all that a Lock has.
func TestSidesOfAnRWLockAreLocks(t *testing.T) {
	onBothServers(t, func(t *testing.T, g *ground) {
		rw, other := g.clients[0].NewRWLock(g.name), g.clients[1].NewRWLock(g.name)
		for _, side := range []*relock.Lock{rw.RLocker(), rw.WLocker()} {
			read := side == rw.RLocker()
			h, err := side.Acquire(t.Context())
			g.ok(err)
			if side.HoldCount() != 1 || side.Token() != h.Token() || side.Lost() == nil || side.Name() != g.name || h.Name() != g.name {
				t.Errorf("%d holds, token %d of %d, name %q", side.HoldCount(), side.Token(), h.Token(), side.Name())
			}
			g.mayRead(other, read)
			g.tries(false)(other.TryLock(t.Context(), 0))
			g.ok(h.Release())
			g.is(h.Release(), relock.ErrNotHeld)
			g.is(side.Unlock(), relock.ErrNotHeld)

			own := errors.New("own")
			err = side.Do(t.Context(), func(ctx context.Context) error { return errors.Join(own, ctx.Err()) })
			if g.is(err, own); errors.Is(err, context.Canceled) || errors.Is(err, relock.ErrNotHeld) {
				t.Errorf("Do = %v", err)
			}
			ran, err := side.TryDo(t.Context(), 0, func(context.Context) error { g.mayRead(other, read); return nil })
			g.tries(true)(ran, err)

			sync := side.SyncLocker(t.Context())
			sync.Lock()
			g.tries(false)(other.TryLock(t.Context(), 0))
			sync.Unlock()
			g.held()
		}
	})
}

// mayRead asserts whether rw can be read at the moment.
func (g *ground) mayRead(rw *relock.RWLock, want bool) {
	g.t.Helper()
	got, err := rw.TryRLock(g.t.Context(), 0)
	g.tries(want)(got, err)
	if got {
		g.ok(rw.RUnlock())
	}
}

// TestSyncLockersOfReadersShare, and those of writers do not.
func TestSyncLockersOfReadersShare(t *testing.T) {
	onBothServers(t, func(t *testing.T, g *ground) {
		rw := g.clients[0].NewRWLock(g.name, relock.Owner("me"))
		r1, r2 := rw.RLocker().SyncLocker(t.Context()), rw.RLocker().SyncLocker(t.Context())
		r1.Lock()
		r2.Lock()
		th := g.thread("t")
		writes := th.begin(func(context.Context) error { rw.WLocker().SyncLocker(t.Context()).Lock(); return nil })
		g.until(func() (bool, string) {
			info, err := g.view().Info(t.Context())
			g.ok(err)
			return info.Waiters == 1, fmt.Sprint(info)
		})
		r1.Unlock()
		writes.waits()
		r2.Unlock()
		g.ok(writes.ends())
		g.tries(false)(th.TryLock(th.ctx, 0))
	})
}

// TestLossOfEitherSideIsTold to the handle of that side alone.
func TestLossOfEitherSideIsTold(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, g *ground) {
		for _, read := range []bool{false, true} {
			rw := g.clients[0].NewRWLock(g.name, relock.NoWatchdog(), relock.TTL(time.Second))
			side, opposite := rw.WLocker(), rw.RLocker()
			if read {
				side, opposite = opposite, side
			}
			err := side.Do(t.Context(), func(ctx context.Context) error {
				lost := side.Lost()
				<-lost
				g.is(context.Cause(ctx), relock.ErrLost)
				if side.HoldCount() != 0 || side.Token() == 0 || opposite.Lost() != nil {
					t.Errorf("%d live holds, token %d", side.HoldCount(), side.Token())
				}
				return nil
			})
			g.is(err, relock.ErrLost)
			virtual.Sleep(time.Second)
			g.held()
		}
	})
}

func TestInfoShowsModesAndWaiters(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		r1, r2, w, r3 := g.thread("r1"), g.thread("r2"), g.thread("w"), g.thread("r3")
		g.ok(r1.RLock(r1.ctx))
		g.ok(r2.RLock(r2.ctx))
		g.ok(r2.RLock(r2.ctx))
		writes := w.begin(w.Lock)
		g.queue("w")
		reads := r3.begin(r3.RLock)
		g.queue("w", "r3")
		info, err := w.RLocker().Info(t.Context())
		g.ok(err)
		wantReaders(t, info, relock.Holder{Owner: "r1", Read: true, Holds: 1}, relock.Holder{Owner: "r2", Read: true, Holds: 2})
		if info.Waiters != 2 {
			t.Fatalf("%d waiters, want two", info.Waiters)
		}
		waiters, err := r1.WLocker().Waiters(t.Context())
		g.ok(err)
		if len(waiters) != 2 || waiters[0].Read || !waiters[1].Read {
			t.Errorf("waiters %+v, want a writer and a reader", waiters)
		}
		for range 2 {
			g.ok(r2.RUnlock())
		}
		g.ok(r1.RUnlock())
		g.ok(writes.ends())
		info, err = r1.WLocker().Info(t.Context())
		g.ok(err)
		if len(info.Holders) != 1 || info.Holders[0].Read || info.Holders[0].Owner != "w" || info.Waiters != 1 {
			t.Errorf("%+v, want the writer w and a waiter", info)
		}
		g.ok(w.Unlock())
		g.ok(reads.ends())
		g.ok(r3.RUnlock())
	})
}

// wantReaders asserts who holds, in the order of their grants.
func wantReaders(t *testing.T, info relock.Info, readers ...relock.Holder) {
	t.Helper()
	slices.SortFunc(info.Holders, func(a, b relock.Holder) int { return int(a.Token - b.Token) })
	if len(info.Holders) != len(readers) {
		t.Fatalf("%+v, want %d holders", info, len(readers))
	}
	for i, want := range readers {
		got := info.Holders[i]
		if got.Owner != want.Owner || !got.Read || got.Holds != want.Holds || got.Token == 0 || got.TTL <= 20*time.Second || got.TTL > 30*time.Second {
			t.Errorf("holder %+v, want %+v", got, want)
		}
	}
}
