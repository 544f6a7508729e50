package conformance_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/virtual"
)

// A lockSort is one way to lock a name, and the kind it makes it.
type lockSort struct {
	kind string
	read bool
	of   func(c *relock.Client, name string, opts ...relock.LockOption) *relock.Lock
}

var lockSorts = []lockSort{
	{"plain", false, func(c *relock.Client, name string, opts ...relock.LockOption) *relock.Lock {
		return c.NewLock(name, opts...)
	}},
	{"fair", false, func(c *relock.Client, name string, opts ...relock.LockOption) *relock.Lock {
		return c.NewLock(name, append(opts, relock.Fair())...)
	}},
	{"rw", false, func(c *relock.Client, name string, opts ...relock.LockOption) *relock.Lock {
		return c.NewRWLock(name, opts...).WLocker()
	}},
	{"rw", true, func(c *relock.Client, name string, opts ...relock.LockOption) *relock.Lock {
		return c.NewRWLock(name, opts...).RLocker()
	}},
	{"fair rw", false, func(c *relock.Client, name string, opts ...relock.LockOption) *relock.Lock {
		return c.NewRWLock(name, append(opts, relock.Fair())...).WLocker()
	}},
	{"fair rw", true, func(c *relock.Client, name string, opts ...relock.LockOption) *relock.Lock {
		return c.NewRWLock(name, append(opts, relock.Fair())...).RLocker()
	}},
}

// otherKinds runs a case for each two sorts of different kinds.
func otherKinds(t *testing.T, play func(t *testing.T, g *ground, first, second lockSort)) {
	t.Helper()
	onBothServers(t, func(t *testing.T, g *ground) {
		name := g.name
		for i, first := range lockSorts {
			for j, second := range lockSorts {
				if first.kind != second.kind {
					g.name = fmt.Sprint(name, i, j)
					play(t, g, first, second)
				}
			}
		}
	})
}

// refuses asserts that a handle gets ErrKind however it asks, naming the kind in use.
func (g *ground) refuses(l *relock.Lock, kind string) {
	g.t.Helper()
	_, err := l.TryLock(g.t.Context(), 0)
	g.is(err, relock.ErrKind)
	_, err = l.TryLock(g.t.Context(), time.Minute)
	g.is(err, relock.ErrKind)
	err = l.Lock(g.t.Context())
	if g.is(err, relock.ErrKind); err != nil && !strings.Contains(err.Error(), fmt.Sprintf("its kind is %q", kind)) {
		g.t.Errorf("%v does not name the kind %s", err, kind)
	}
}

func TestNameInUseAsAnotherKindIsRefused(t *testing.T) {
	otherKinds(t, func(t *testing.T, g *ground, first, second lockSort) {
		a := first.of(g.clients[0], g.name)
		g.ok(a.Lock(t.Context()))
		for _, c := range g.clients {
			b := second.of(c, g.name)
			g.refuses(b, first.kind)
			info, err := b.Info(t.Context())
			g.ok(err)
			if info.Kind != first.kind || len(info.Holders) != 1 || info.Waiters != 0 {
				t.Errorf("%+v, want one holder of the kind %s", info, first.kind)
			}
		}
		g.ok(a.Unlock())
		b := second.of(g.clients[1], g.name) // nobody uses it any more
		g.ok(b.Lock(t.Context()))
		g.refuses(a, second.kind)
		g.ok(b.Unlock())
	})
}

// TestWaitersOfACrashedHolderKeepTheKind, until they have gone as well.
func TestWaitersOfACrashedHolderKeepTheKind(t *testing.T) {
	for i, first := range lockSorts {
		for j, second := range lockSorts {
			if first.kind == second.kind {
				continue
			}
			t.Run(fmt.Sprint(first.kind, i, " ", second.kind, j), func(t *testing.T) {
				inVirtualTime(t, func(t *testing.T, g *ground) {
					crashed, holds := g.over()
					slow, waits := g.over()
					holder := lockSorts[i/2*2].of(crashed, g.name, relock.TTL(time.Second)) // a reader's writer
					if first.kind == "fair" {
						holder = first.of(crashed, g.name, relock.TTL(time.Second))
					}
					g.ok(holder.Lock(t.Context()))
					th := g.threadOf(slow, "waiter")
					waiter := first.of(slow, g.name)
					a := th.begin(waiter.Lock)
					g.queue("waiter")
					synctest.Wait()
					holds.Cut()
					heal := waits.Cut() // it cannot take what has become free
					virtual.Sleep(1500 * time.Millisecond)
					g.held()
					b := second.of(g.clients[0], g.name)
					g.refuses(b, first.kind)
					virtual.Sleep(30 * time.Second) // its entry has ended, too
					g.tries(true)(b.TryLock(t.Context(), 0))
					heal()
					g.is(a.ends(), relock.ErrKind)
					g.ok(b.Unlock())
					a = th.begin(waiter.Lock)
					g.ok(a.ends())
					g.ok(waiter.Unlock())
				})
			})
		}
	}
}

// TestARequestWithoutTheQueuesKeySeesReaders is a defect that was: in a slot that migrates the
// request names the hash alone, where readers do not stand, and a second kind
// got the lock beside them.
func TestARequestWithoutTheQueuesKeySeesReaders(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, g *ground) {
		r := g.thread("r")
		g.ok(r.RLock(r.ctx))
		for _, s := range lockSorts[:2] {
			l := s.of(g.clients[1], g.name)
			var migrated atomic.Bool
			g.virtual.FailNext(3, "TRYAGAIN Multiple keys request during rehashing of slot", func(args []string) bool {
				return !migrated.Load() && args[0] == "evalsha" && args[2] == "2"
			})
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			g.is(l.Lock(ctx), relock.ErrKind)
			cancel()
			migrated.Store(true)
			g.held("r r1")
		}
		g.ok(r.RUnlock())
	})
}

// TestNameOfDeadReadersCanBeAnotherKind when their leases have ended, though nobody
// has cleared them away: they hold no more.
func TestNameOfDeadReadersCanBeAnotherKind(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, g *ground) {
		c, link := g.over()
		dead := g.threadOf(c, "dead")
		g.ok(dead.RLock(dead.ctx))
		link.Hole()
		virtual.Sleep(30*time.Second + 3*time.Millisecond)
		plain := g.clients[0].NewLock(g.name)
		g.tries(true)(plain.TryLock(t.Context(), 0))
		g.ok(plain.Unlock())
	})
}
