package relock_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/redistest"
)

// A pooled is a process whose redis client keeps many connections.
type pooled struct {
	*actor
	rdb *redis.Client
}

func (s *scene) pooled(size int) *pooled {
	s.t.Helper()
	s.t.Cleanup(func() { time.Sleep(10 * time.Second) }) // silent connections end by ReadTimeout
	link := redistest.NewLink(s.t, s.srv.Dial)
	rdb := s.srv.Client(s.t, func(o *redis.Options) { o.Dialer, o.PoolSize = link.Dial, size })
	a := newActor(s.t, rdb, link)
	a.SetClock(clock.New(time.Now, nil))
	a.warm()
	return &pooled{a, rdb}
}

// fall makes so many connections idle in the pool, and ten in that for pipelines,
// and then all that are there silent, as where a firewall is replaced. New ones work.
func (p *pooled) fall(s *scene, idle int) {
	p.t.Helper()
	resume := s.srv.Stall()
	var wg sync.WaitGroup
	for range idle {
		wg.Go(func() { p.rdb.Ping(p.t.Context()) })
	}
	for range 10 {
		wg.Go(func() {
			_, _ = p.rdb.Pipelined(p.t.Context(), func(pipe redis.Pipeliner) error { pipe.Ping(p.t.Context()); return nil })
		})
	}
	synctest.Wait()
	resume()
	wg.Wait()
	if n := p.rdb.PoolStats().IdleConns; int(n) < idle {
		p.t.Fatalf("%d connections idle, want %d", n, idle)
	}
	p.link.Hole()()
}

// Fails when one try after the other is spent on connections that are as dead as
// the first one.
func TestF18DeadConnectionsAreUsedUpAtOnce(t *testing.T) {
	for _, pool := range []struct{ size, idle int }{{20, 20}, {40, 20}, {640, 600}} {
		t.Run(fmt.Sprint(pool.idle, " of ", pool.size), func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) {
				a := s.pooled(pool.size)
				l := a.NewLock("l")
				held := s.take(l)
				s.until(5 * time.Second)
				a.fall(s, pool.idle)
				s.until(45 * time.Second) // beyond the lease
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
				s.until(60 * time.Second)
				a.fall(s, pool.idle)
				call := s.begin(l)
				endHold(t, call.returns())
				if call.at > 65*time.Second {
					t.Errorf("a free lock is held at %v, want within 5 s of 1m0s", call.at)
				}
			})
		})
	}
}

// Fails as the test before.
func TestF18WaiterWithDeadConnectionsIsServed(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b := s.pooled(20), s.actor()
		held := s.take(b.NewLock("l"))
		s.until(101 * time.Millisecond)
		waiter := s.begin(a.NewLock("l", relock.TTL(9*time.Second)))
		behind := s.begin(b.NewLock("l", relock.NoWatchdog()))
		a.fall(s, 20)
		s.until(9300 * time.Millisecond)
		endHold(t, held)
		endHold(t, waiter.returns())
		endHold(t, behind.returns())
		if behind.at < waiter.at || waiter.at > 13*time.Second {
			t.Errorf("holds at %v, and who came later at %v", waiter.at, behind.at)
		}
	})
}
