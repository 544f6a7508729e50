package conformance_test

import (
	"testing"
	"time"

	"github.com/relock-go/relock"
)

func TestTCK_W01_Constructor(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		th := g.thread("t")
		if th.RLocker().HoldCount() != 0 || th.WLocker().HoldCount() != 0 {
			t.Error("a new handle has holds")
		}
		if keys := g.rdb.Keys(t.Context(), "*"+g.name+"*").Val(); len(keys) != 0 {
			t.Errorf("a constructor has written %q", keys)
		}
		g.held()
		g.ok(th.RLock(th.ctx))
		info, err := g.view().Info(t.Context())
		g.ok(err)
		if want := map[bool]string{false: "rw", true: "fair rw"}[len(g.opts) > 0]; info.Kind != want {
			t.Errorf("kind %q, want %q", info.Kind, want)
		}
		g.ok(th.RUnlock())
	})
}

func TestTCK_W02_Lock(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		th := g.thread("t")
		g.ok(th.Lock(th.ctx))
		g.held("t w1")
		g.ok(th.Unlock())
		g.held()
		g.ok(th.RLock(th.ctx))
		g.held("t r1")
		g.ok(th.RUnlock())
		g.held()
	})
}

// counting re-enters a side up and down, and counts its holds.
func counting(g *ground, side *relock.Lock, th *thread) {
	g.t.Helper()
	check := func(want int) {
		g.t.Helper()
		if got := side.HoldCount(); got != want {
			g.t.Errorf("%d holds, want %d", got, want)
		}
		info, err := side.Info(g.t.Context())
		g.ok(err)
		if want > 0 && (len(info.Holders) != 1 || info.Holders[0].Holds != want) {
			g.t.Errorf("holders %v, want one with %d", info.Holders, want)
		}
	}
	for i := 1; i <= depth; i++ {
		g.ok(side.Lock(th.ctx))
		check(i)
	}
	for i := depth - 1; i >= 0; i-- {
		g.ok(side.Unlock())
		check(i)
	}
	g.held()
}

func TestTCK_W03_W04_GetWriteHoldCount(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		th := g.thread("t")
		counting(g, th.WLocker(), th)
	})
}

func TestTCK_W05_GetReadHoldCount(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		th := g.thread("t")
		counting(g, th.RLocker(), th)
	})
}

func TestTCK_W06_WriteUnlockIllegalState(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		th := g.thread("t")
		g.is(th.Unlock(), relock.ErrNotHeld)
		g.ok(th.RLock(th.ctx))
		g.is(th.Unlock(), relock.ErrNotHeld) // the other mode does not count
		g.held("t r1")
		g.ok(th.RUnlock())
	})
}

func TestTCK_W07_ReadUnlockIllegalState(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		th := g.thread("t")
		g.is(th.RUnlock(), relock.ErrNotHeld)
		g.ok(th.Lock(th.ctx))
		g.is(th.RUnlock(), relock.ErrNotHeld)
		g.held("t w1")
		g.ok(th.Unlock())
	})
}

func TestTCK_W08_WriteTryLock(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		th := g.thread("t")
		g.tries(true)(th.TryLock(th.ctx, 0))
		g.tries(true)(th.TryLock(th.ctx, 0))
		g.held("t w2")
		g.ok(th.Unlock())
		g.held("t w1")
		g.ok(th.Unlock())
		g.held()
	})
}

func TestTCK_W09_WriteTryLockWhenLocked(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		me, far, near := g.thread("me"), g.thread("far"), g.thread("near")
		g.ok(me.Lock(me.ctx))
		g.tries(false)(far.TryLock(far.ctx, 0))
		g.tries(false)(near.TryLock(near.ctx, 0))
		g.queue()
		g.held("me w1")
		g.ok(me.Unlock())
	})
}

func TestTCK_W10_ReadTryLockWhenLocked(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		me, far, near := g.thread("me"), g.thread("far"), g.thread("near")
		g.ok(me.Lock(me.ctx))
		g.tries(false)(far.TryRLock(far.ctx, 0))
		g.tries(false)(near.TryRLock(near.ctx, 0))
		g.queue()
		g.held("me w1")
		g.ok(me.Unlock())
	})
}

func TestTCK_W11_TryLockWhenReadLocked(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		me, far, near := g.thread("me"), g.thread("far"), g.thread("near")
		g.ok(me.RLock(me.ctx))
		g.tries(true)(far.TryRLock(far.ctx, 0))
		g.tries(true)(near.TryRLock(near.ctx, 0))
		g.held("far r1", "me r1", "near r1")
		g.ok(far.RUnlock())
		g.ok(me.RUnlock())
		g.held("near r1")
		g.ok(near.RUnlock())
		g.held()
	})
}

func TestTCK_W12_WriteTryLockWhenReadLocked(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		me, far, near := g.thread("me"), g.thread("far"), g.thread("near")
		g.ok(me.RLock(me.ctx))
		g.tries(false)(far.TryLock(far.ctx, 0))
		g.tries(false)(near.TryLock(near.ctx, 0))
		g.queue()
		g.held("me r1")
		g.ok(me.RUnlock())
	})
}

// timeouts asserts that a timed call gives up under a writer, and not early.
func timeouts(t *testing.T, side func(*thread) *relock.Lock) {
	t.Helper()
	inBothModes(t, func(t *testing.T, g *ground) {
		const wait = 50 * time.Millisecond
		me, other := g.thread("me"), g.thread("other")
		g.ok(me.Lock(me.ctx))
		began := time.Now()
		g.tries(false)(side(other).TryLock(other.ctx, wait))
		if took := time.Since(began); took < wait {
			t.Errorf("gave up after %v, want %v", took, wait)
		}
		g.queue()
		g.held("me w1")
		g.ok(me.Unlock())
	})
}

func TestTCK_W13_WriteTryLockTimeout(t *testing.T) {
	timeouts(t, func(th *thread) *relock.Lock { return th.WLocker() })
}

func TestTCK_W14_ReadTryLockTimeout(t *testing.T) {
	timeouts(t, func(th *thread) *relock.Lock { return th.RLocker() })
}

func TestTCK_W15_MultipleReadLocks(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		me, other := g.thread("me"), g.thread("other")
		g.ok(me.RLock(me.ctx))
		g.tries(true)(other.TryRLock(other.ctx, 0))
		g.ok(other.RUnlock())
		g.tries(true)(other.TryRLock(other.ctx, time.Minute))
		g.ok(other.RUnlock())
		g.ok(other.RLock(other.ctx))
		g.held("me r1", "other r1")
		g.ok(other.RUnlock())
		g.ok(me.RUnlock())
	})
}

func TestTCK_W16_WriteAfterReadLock(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		me, writer := g.thread("me"), g.thread("writer")
		g.ok(me.RLock(me.ctx))
		a := writer.begin(writer.Lock)
		g.queue("writer")
		a.waits()
		g.held("me r1")
		g.ok(me.RUnlock())
		g.ok(a.ends())
		g.held("writer w1")
		g.ok(writer.Unlock())
		g.held()
	})
}

func TestTCK_W17_WriteAfterMultipleReadLocks(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		me, reader, writer := g.thread("me"), g.thread("reader"), g.thread("writer")
		g.ok(me.RLock(me.ctx))
		g.ok(me.RLock(me.ctx))
		g.ok(reader.begin(reader.RLock).ends())
		g.held("me r2", "reader r1")
		a := writer.begin(writer.Lock)
		g.queue("writer")
		g.ok(reader.RUnlock())
		a.waits()
		g.held("me r2")
		g.ok(me.RUnlock())
		a.waits()
		g.held("me r1")
		g.queue("writer")
		g.ok(me.RUnlock())
		g.ok(a.ends())
		g.held("writer w1")
		g.ok(writer.Unlock())
	})
}

func TestTCK_W18_ReadAfterWriteLock(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		me, t1, t2 := g.thread("me"), g.thread("t1"), g.thread("t2")
		g.ok(me.Lock(me.ctx))
		a1 := t1.begin(t1.RLock)
		g.queue("t1")
		a2 := t2.begin(t2.RLock)
		g.queue("t1", "t2")
		a1.waits()
		a2.waits()
		g.ok(me.Unlock())
		g.ok(a1.ends())
		g.ok(a2.ends())
		g.held("t1 r1", "t2 r1")
		g.ok(t1.RUnlock())
		g.ok(t2.RUnlock())
		g.held()
	})
}
