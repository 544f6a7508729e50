package schedules_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// The addresses of a duo's servers. Nothing answers there.
const nearAddr, farAddr = "192.0.2.1:6379", "192.0.2.2:6379"

// A duo is a Cluster of two servers, each with a clock of its own.
type duo struct {
	*rig.Lab
	far *redistest.Server // the scene's is the near one
}

func playDuo(t *testing.T, schedule func(t *testing.T, s *duo)) {
	t.Helper()
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		p := &duo{Lab: s, far: redistest.Start(t)}
		s.Server.Shard()
		p.far.Shard()
		rig.LoadScripts(t, p.far.Client(t))
		schedule(t, p)
	})
}

// A duoActor is a process, its link to the far server, and names of locks.
type duoActor struct {
	*rig.Actor
	near, far func(i int) string
}

// process returns a client that has locked on both servers. Its messages come by
// sharded channels: those of the virtual servers stay on the one they are sent to,
// as in a Cluster.
func (p *duo) process() *duoActor {
	p.T.Helper()
	near, far := redistest.NewLink(p.T, p.Server.Dial), redistest.NewLink(p.T, p.far.Dial)
	rdb := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{nearAddr},
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr == farAddr {
				return far.Dial(ctx, network, addr)
			}
			return near.Dial(ctx, network, addr)
		},
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			return []redis.ClusterSlot{
				{Start: 0, End: 8191, Nodes: []redis.ClusterNode{{Addr: nearAddr}}},
				{Start: 8192, End: 16383, Nodes: []redis.ClusterNode{{Addr: farAddr}}},
			}, nil
		},
	})
	p.T.Cleanup(func() { _ = rdb.Close(); virtual.Sleep(5 * time.Second) })
	a := p.ActorOver(rdb, far, relock.ShardedPubSub())
	of := func(addr string) func(i int) string {
		return func(i int) string { return p.nameAt(rdb, addr, i) }
	}
	both := &duoActor{a, of(nearAddr), of(farAddr)}
	for _, name := range []string{both.near(0), both.far(0)} {
		rig.End(p.T, p.Take(a.NewLock(name)))
	}
	return both
}

// nameAt returns the ith name whose lock is on the server.
func (p *duo) nameAt(rdb *redis.ClusterClient, addr string, i int) string {
	p.T.Helper()
	for n := 0; ; n++ {
		name := fmt.Sprint("lock ", n)
		node, err := rdb.MasterForKey(p.T.Context(), key.For("relock", name).Hash)
		if err != nil {
			p.T.Fatal(err)
		}
		if node.Options().Addr == addr {
			if i == 0 {
				return name
			}
			i--
		}
	}
}

// keepBusy locks and unlocks l until the returned function is called.
func (p *duo) keepBusy(l *relock.Lock) (stop func()) {
	ctx, cancel := context.WithCancel(p.T.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if h, err := l.Acquire(ctx); err == nil {
				virtual.Sleep(47 * time.Millisecond)
				_ = h.Release()
			}
		}
	}()
	return func() { cancel(); <-done }
}

// Fails when what a server's clock says is taken for the time of all servers.
func TestF08WaitersOfAClusterKeepTheirPlacesThoughItsClocksDiffer(t *testing.T) {
	for _, step := range []time.Duration{11 * time.Second, -61 * time.Second} {
		playDuo(t, func(t *testing.T, p *duo) {
			p.far.StepClock(step)
			a, b := p.process(), p.process()
			name := b.far(1)
			held := p.Take(a.NewLock(name, relock.Fair()))
			stop := p.keepBusy(b.NewLock(b.near(1)))
			defer stop()
			virtual.Sleep(101 * time.Millisecond)
			first := p.Begin(b.NewLock(name, relock.Fair(), relock.TTL(time.Second)))
			virtual.Sleep(102 * time.Millisecond)
			second := p.Begin(a.NewLock(name, relock.Fair(), relock.TTL(time.Second)))
			asked := b.Sent("acquire")
			for range 24 {
				virtual.Sleep(101 * time.Millisecond)
				if n := p.Info(a.NewLock(name, relock.Fair())).Waiters; n != 2 {
					t.Fatalf("clocks %v apart: %d wait, want 2", step, n)
				}
			}
			if n := b.Sent("acquire") - asked; n > 8 {
				t.Errorf("clocks %v apart: %d heartbeats within 2.4 s, want three a second", step, n)
			}
			began := p.Now()
			rig.End(t, held)
			rig.End(t, first.Returns())
			rig.End(t, second.Returns())
			if second.At < first.At || second.At > began+50*time.Millisecond {
				t.Errorf("clocks %v apart: holds at %v and %v, want one after the other from %v on", step, first.At, second.At, began)
			}
		})
	}
}
