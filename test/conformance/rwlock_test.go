package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/relock-go/relock"
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

// TestEveryGrantOfEitherModeHasALargerToken: re-entries of it share its token.
func TestEveryGrantOfEitherModeHasALargerToken(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		var tokens []int64
		grant := func(l *relock.Lock, ctx context.Context) {
			t.Helper()
			h, err := l.Acquire(ctx)
			g.ok(err)
			tokens = append(tokens, h.Token())
			if l.Token() != h.Token() {
				t.Errorf("the handle says %d, the hold %d", l.Token(), h.Token())
			}
		}
		same := func(l *relock.Lock, ctx context.Context) {
			t.Helper()
			grant(l, ctx)
			n := len(tokens)
			if tokens[n-1] != tokens[n-2] {
				t.Errorf("a re-entry has token %d, its grant %d", tokens[n-1], tokens[n-2])
			}
			tokens = tokens[:n-1]
		}
		for range 3 {
			me, r1, r2, w := g.thread("me"), g.thread("r1"), g.thread("r2"), g.thread("w")
			grant(r1.RLocker(), r1.ctx)
			grant(r2.RLocker(), r2.ctx)
			same(r2.RLocker(), r2.ctx)
			a := w.begin(func(ctx context.Context) error { grant(w.WLocker(), ctx); return nil })
			g.queue("w")
			for _, side := range []*relock.Lock{r1.RLocker(), r2.RLocker(), r2.RLocker()} {
				g.ok(side.Unlock())
			}
			g.ok(a.ends())
			same(w.RLocker(), w.ctx)
			a = r1.begin(func(ctx context.Context) error { grant(r1.RLocker(), ctx); return nil })
			g.queue("r1")
			token := w.Token(t)
			g.ok(w.Downgrade(w.ctx))
			g.ok(a.ends())
			if got := w.RLocker().Token(); got != token {
				t.Errorf("token %d after the downgrade, %d before", got, token)
			}
			for _, side := range []*relock.Lock{w.RLocker(), w.RLocker(), r1.RLocker()} {
				g.ok(side.Unlock())
			}
			grant(me.WLocker(), me.ctx)
			g.ok(me.Unlock())
		}
		if len(tokens) != 15 || !slices.IsSorted(tokens) || len(slices.Compact(tokens)) != 15 {
			t.Errorf("tokens %d, want 15 that grow", tokens)
		}
	})
}

// Token is that of the write hold.
func (th *thread) Token(t *testing.T) int64 {
	t.Helper()
	token := th.WLocker().Token()
	if token == 0 {
		t.Error("no token")
	}
	return token
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
			g.tries(read)(other.TryRLock(t.Context(), 0))
			if read {
				g.ok(other.RUnlock())
			}
			g.tries(false)(other.TryLock(t.Context(), 0))
			g.ok(h.Release())
			g.is(h.Release(), relock.ErrNotHeld)
			g.is(side.Unlock(), relock.ErrNotHeld)

			own := errors.New("own")
			err = side.Do(t.Context(), func(ctx context.Context) error { return errors.Join(own, ctx.Err()) })
			if g.is(err, own); errors.Is(err, context.Canceled) || errors.Is(err, relock.ErrNotHeld) {
				t.Errorf("Do = %v", err)
			}
			ran, err := side.TryDo(t.Context(), 0, func(context.Context) error {
				got, err := other.TryRLock(t.Context(), 0)
				g.tries(read)(got, err)
				if got {
					g.ok(other.RUnlock())
				}
				return nil
			})
			g.tries(true)(ran, err)

			sync := side.SyncLocker(t.Context())
			sync.Lock()
			g.tries(false)(other.TryLock(t.Context(), 0))
			sync.Unlock()
			g.held()
		}
	})
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
			time.Sleep(time.Second)
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
		slices.SortFunc(info.Holders, func(a, b relock.Holder) int { return int(a.Token - b.Token) })
		if len(info.Holders) != 2 || info.Waiters != 2 {
			t.Fatalf("%+v, want two holders and two waiters", info)
		}
		for i, want := range []relock.Holder{{Owner: "r1", Read: true, Holds: 1}, {Owner: "r2", Read: true, Holds: 2}} {
			got := info.Holders[i]
			if got.Owner != want.Owner || !got.Read || got.Holds != want.Holds || got.Token == 0 || got.TTL <= 20*time.Second || got.TTL > 30*time.Second {
				t.Errorf("holder %+v, want %+v", got, want)
			}
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
