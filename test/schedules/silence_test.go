package schedules_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// A pooled is a process whose redis client keeps many connections.
type pooled struct {
	*rig.Actor
	rdb *redis.Client
}

func newPooled(s *rig.Lab, size int) *pooled {
	s.T.Helper()
	s.T.Cleanup(func() { virtual.Sleep(10 * time.Second) }) // silent connections end by ReadTimeout
	link := redistest.NewLink(s.T, s.Server.Dial)
	rdb := s.Server.Client(s.T, func(o *redis.Options) { o.Dialer, o.PoolSize = link.Dial, size })
	a := s.ActorOver(rdb, link)
	a.Warm()
	return &pooled{a, rdb}
}

// fall makes so many connections idle in the pool, and ten in that for pipelines,
// and then all that are there silent, as where a firewall is replaced. New ones work.
func (p *pooled) fall(s *rig.Lab, idle int) {
	p.T.Helper()
	resume := s.Server.Stall()
	var wg sync.WaitGroup
	for range idle {
		wg.Go(func() { p.rdb.Ping(p.T.Context()) })
	}
	for range 10 {
		wg.Go(func() {
			_, _ = p.rdb.Pipelined(p.T.Context(), func(pipe redis.Pipeliner) error { pipe.Ping(p.T.Context()); return nil })
		})
	}
	synctest.Wait()
	resume()
	wg.Wait()
	if n := p.rdb.PoolStats().IdleConns; int(n) < idle {
		p.T.Fatalf("%d connections idle, want %d", n, idle)
	}
	p.Link.Hole()()
}

// Fails when one try after the other is spent on connections that are as dead as
// the first one.
func TestF18DeadConnectionsAreUsedUpAtOnce(t *testing.T) {
	for _, pool := range []struct{ size, idle int }{{20, 20}, {40, 20}, {640, 600}} {
		t.Run(fmt.Sprint(pool.idle, " of ", pool.size), func(t *testing.T) {
			rig.Play(t, func(t *testing.T, s *rig.Lab) {
				a := newPooled(s, pool.size)
				l := a.NewLock("l")
				held := s.Take(l)
				s.Until(5 * time.Second)
				a.fall(s, pool.idle)
				s.Until(45 * time.Second) // beyond the lease
				if err := held.Err(); err != nil {
					t.Fatalf("a hold whose redis can be reached: %v", err)
				}
				if pool.idle == pool.size {
					return // a place in the pool comes free after ReadTimeout only
				}
				a.fall(s, pool.idle)
				if err := held.Release(); err != nil {
					t.Errorf("Unlock: %v", err)
				}
				s.Until(60 * time.Second)
				a.fall(s, pool.idle)
				call := s.Begin(l)
				rig.End(t, call.Returns())
				if call.At > 65*time.Second {
					t.Errorf("a free lock is held at %v, want within 5 s of 1m0s", call.At)
				}
			})
		})
	}
}

// Fails when the tries of Client.Locks use up one dead connection after the other.
func TestF18LocksAreListedThoughConnectionsAreDead(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a := newPooled(s, 40)
		held := s.Take(s.Client().NewLock("l"))
		s.Until(2 * time.Minute) // it asks nothing by itself any more
		a.fall(s, 20)
		n := 0
		for info, err := range a.Client.Locks(t.Context(), "") {
			if n++; err != nil || info.Name != "l" {
				t.Errorf("Locks: %+v, %v, want the lock", info, err)
			}
		}
		if n != 1 {
			t.Errorf("%d locks, want 1", n)
		}
		rig.End(t, held)
	})
}

// Fails as the test before.
func TestF18WaiterWithDeadConnectionsIsServed(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := newPooled(s, 20), s.Actor()
		held := s.Take(b.NewLock("l"))
		s.Until(101 * time.Millisecond)
		waiter := s.Begin(a.NewLock("l", relock.TTL(9*time.Second)))
		behind := s.Begin(b.NewLock("l", relock.NoWatchdog()))
		a.fall(s, 20)
		s.Until(9300 * time.Millisecond)
		rig.End(t, held)
		rig.End(t, waiter.Returns())
		rig.End(t, behind.Returns())
		if behind.At < waiter.At || waiter.At > 13*time.Second {
			t.Errorf("holds at %v, and who came later at %v", waiter.At, behind.At)
		}
	})
}
