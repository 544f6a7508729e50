package conformance_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/script"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/lua"
)

// Calls that wait for their turn to speak all had the newest hold in mind: two
// downgrades moved it twice, and an unlock ended it while a downgrade moved it.
// Fails without the fix: the handle's list decides who has the hold.
func TestEveryCallOnAHandleTakesAHoldOfItsOwn(t *testing.T) {
	for _, second := range []string{"Downgrade", "Unlock"} {
		inVirtualTime(t, func(t *testing.T, g *ground) {
			c, link := g.over()
			me := g.threadOf(c, "me")
			for range 3 {
				g.ok(me.Lock(me.ctx))
			}
			resume := holdFirst(link, "hold")
			read := me.begin(me.RLock) // has the turn until its statement is answered
			read.waits()
			first := me.begin(me.Downgrade)
			first.waits()
			call := me.Downgrade
			if second == "Unlock" {
				call = func(context.Context) error { return me.Unlock() }
			}
			other := me.begin(call)
			other.waits()
			resume()
			g.ok(read.ends())
			g.ok(first.ends())
			g.ok(other.ends())
			writes, reads := 1, 3
			if second == "Unlock" {
				reads = 2
			}
			if w, r := me.WLocker().HoldCount(), me.RLocker().HoldCount(); w != writes || r != reads {
				t.Errorf("%s: %d write holds and %d read holds, want %d and %d", second, w, r, writes, reads)
			}
			g.held(fmt.Sprint("me w", writes+reads))
			g.ok(me.Unlock())
			for range reads {
				g.ok(me.RUnlock())
			}
			g.is(me.RUnlock(), relock.ErrNotHeld)
			g.held()
		})
	}
}

// holdFirst holds the first command of the script until resume is called.
func holdFirst(link *redistest.Link, script string) (resume func()) {
	gate := make(chan struct{})
	var held atomic.Bool
	link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
		if rig.Runs(cmd, script) && held.CompareAndSwap(false, true) {
			return redistest.Hold(gate)
		}
		return redistest.Pass
	})
	return func() { close(gate) }
}

// A read hold that was lost and is not unlocked yet is somebody else's: an RUnlock
// could end either. Fails without the fix: Downgrade asks as RLock does.
func TestDowngradeBesideAnotherOwnersReadHoldIsRefused(t *testing.T) {
	onBothServers(t, func(t *testing.T, g *ground) {
		rw := g.clients[0].NewRWLock(g.name)
		a, b := relock.WithOwner(t.Context(), "a"), relock.WithOwner(t.Context(), "b")
		g.ok(rw.RLock(a))
		lost := rw.RLocker().Lost()
		g.tries(true)(g.view().ForceUnlock(t.Context()))
		<-lost
		g.ok(rw.Lock(b))
		g.is(rw.Downgrade(b), relock.ErrOwnerMismatch)
		g.held("b w1")
		g.is(rw.RUnlock(), relock.ErrLost)
		g.ok(rw.Downgrade(b))
		g.held("b r1")
		g.ok(rw.RUnlock())
		g.is(rw.Unlock(), relock.ErrNotHeld)
	})
}

// A script lets in 256 readers at most. Who had made it go that far was let in
// itself, or was not the first of its heartbeat, and the others waited for
// somebody else to ask. Fails without the fix: what is left over is settled.
func TestReadersBeyondOneCallAreLetInAtOnce(t *testing.T) {
	const crowd = 1000
	for _, wait := range []time.Duration{0, 100 * time.Millisecond} {
		inVirtualTime(t, func(t *testing.T, g *ground) {
			hears := g.threadOf(g.clients[0], "hears") // what is granted to the crowd
			late := g.threadOf(g.clients[1], "late")
			for _, r := range []*thread{hears, late} { // a client that subscribes later would ask again when it hears
				g.ok(r.RLock(r.ctx))
				g.ok(r.RUnlock())
			}
			dead, link := g.over()
			w := g.threadOf(dead, "w")
			g.ok(w.Lock(w.ctx))
			link.Hole()
			ends := time.Now().Add(30 * time.Second)
			queueReaders(g, rig.ID(g.clients[0]), crowd)
			virtual.Sleep(time.Until(ends) + time.Millisecond)
			all := crowd
			held, err := late.TryRLock(late.ctx, wait)
			g.ok(err)
			if all++; !held {
				t.Errorf("behind the crowd TryRLock for %v said %v", wait, held)
			}
			virtual.Sleep(100 * time.Millisecond) // long before the next heartbeat
			g.reads(all)
			_ = late.RUnlock()
		})
	}
}

// queueReaders puts readers of a client into the queue that nobody there waits for.
func queueReaders(g *ground, client string, n int) {
	g.t.Helper()
	r := rig.Raw{T: g.t, Redis: g.rdb, ID: client}
	var args []any
	for i := range n {
		request := r.Request("rw", fmt.Sprintf("%022d", i), fmt.Sprint("~r", i), "r", time.Hour, 1, 1, 0)
		if i > 0 {
			request = request[3:]
		}
		args = append(args, request...)
	}
	keys := key.For("relock", g.name)
	g.ok(g.rdb.Eval(g.t.Context(), script.MustLoad(lua.FS, "acquire").Source, []string{keys.Hash, keys.Queue}, args...).Err())
}

// An entry that nobody waits for holds the others up for up to its lease. Fails
// without the fix: Close gives the leaving a moment.
func TestCloseLeavesTheQueue(t *testing.T) {
	for name, leave := range map[string]func(a *attempt, c *relock.Client){
		"by a context that has just ended": func(a *attempt, c *relock.Client) { a.interrupt(); _ = c.Close() },
		"by Close":                         func(_ *attempt, c *relock.Client) { _ = c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, g *ground) {
				holds := g.threadOf(g.clients[0], "holds")
				g.ok(holds.excl.Lock(holds.ctx))
				c, link := g.over()
				link.Latency(20 * time.Millisecond)
				waits := g.threadOf(c, "waits")
				a := waits.begin(waits.excl.Lock)
				g.queue("waits")
				virtual.Sleep(time.Second)
				began := time.Now()
				leave(a, c)
				if took := time.Since(began); took > 250*time.Millisecond {
					t.Errorf("Close took %v", took)
				}
				left, err := g.view().Waiters(t.Context())
				g.ok(err)
				if len(left) > 0 {
					t.Errorf("its entry is left: %v", left)
				}
				if err := a.ends(); err == nil {
					t.Error("the waiter holds")
				}
				g.ok(holds.excl.Unlock())
			})
		})
	}
}

func TestCloseWaitsForASilentServerNoLongerThanItSays(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, g *ground) {
		holds := g.threadOf(g.clients[0], "holds")
		g.ok(holds.excl.Lock(holds.ctx))
		c, link := g.over()
		waits := g.threadOf(c, "waits")
		a := waits.begin(waits.excl.Lock)
		g.queue("waits")
		heal := link.Hole()
		began := time.Now()
		closed := make(chan struct{})
		go func() { _ = c.Close(); close(closed) }()
		g.is(a.ends(), relock.ErrClosed)
		if took := time.Since(began); took > 10*time.Millisecond {
			t.Errorf("the waiter was told after %v", took)
		}
		virtual.Sleep(251 * time.Millisecond)
		heal()
		<-closed
		// What has not got through by then ends with its lease.
		g.queue("waits")
		g.ok(holds.excl.Unlock())
	})
}
