package cost_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
)

// A throng is a server on which many calls wait for a lock, and are served.
type throng struct {
	t       *testing.T
	c       *relock.Client
	eye     *redis.Client
	waiting atomic.Int64
}

func newThrong(t *testing.T) *throng {
	x := &throng{t: t}
	x.c, x.eye, _ = costly(t, relock.Trace(relock.Hooks{Waiting: func(context.Context, relock.Event) { x.waiting.Add(1) }}))
	rig.Must(t, x.eye.ConfigSet(t.Context(), "slowlog-log-slower-than", "10000").Err())
	return x
}

// serve returns the calls in scripts that each of n locks and unlocks costs.
func (x *throng) serve(holder *relock.Lock, n int, l func(i int) *relock.Lock) (work float64) {
	x.t.Helper()
	rig.Must(x.t, holder.Lock(x.t.Context()))
	errs := make(chan error, n)
	cost := costOf(x.t, x.eye, n, func() {
		x.waiting.Store(0)
		for i := range n {
			l := l(i)
			go func() {
				err := l.Lock(context.Background())
				if err == nil {
					err = l.Unlock()
				}
				errs <- err
			}()
		}
		for x.waiting.Load() < int64(n) {
			runtime.Gosched()
		}
		rig.Must(x.t, holder.Unlock())
		for range n {
			rig.Must(x.t, <-errs)
		}
	})
	for name, calls := range cost.calls {
		if name != "evalsha" && name != "ping" {
			work += calls
		}
	}
	return work
}

// slow returns how many scripts have taken 10 ms or more.
func (x *throng) slow() (n int) {
	logs, err := x.eye.SlowLogGet(x.t.Context(), -1).Result()
	rig.Must(x.t, err)
	rig.Must(x.t, x.eye.Do(x.t.Context(), "slowlog", "reset").Err())
	for _, l := range logs {
		if l.Args[0] == "evalsha" || l.Args[0] == "eval" {
			n++
		}
	}
	return n
}

// A machine that is busy makes any script slow at times: not each time.
// Fails when calls of one owner each have an entry in Redis, and each other's looks.
func TestACrowdUnderOneNameDoesNotStopTheServer(t *testing.T) {
	for kind, of := range rig.Crowds {
		t.Run(kind, func(t *testing.T) {
			x := newThrong(t)
			apart := x.serve(rig.CrowdHolder(x.c, kind, "apart"), 200, func(i int) *relock.Lock {
				return of(x.c, "apart", relock.Owner(fmt.Sprint("one of ", i)))
			})
			var one float64
			for round := range 3 {
				x.slow()
				name := fmt.Sprint("one ", round)
				ping := pinging(t, x.eye, func() {
					one = x.serve(rig.CrowdHolder(x.c, kind, name), 2000, func(int) *relock.Lock {
						return of(x.c, name, relock.Owner("pool"))
					})
				})
				n := x.slow()
				t.Logf("%d scripts of 10 ms and more; another client's PING took %v in 99 of 100 cases", n, ping)
				if n == 0 && ping < 20*time.Millisecond {
					break
				} else if round == 2 {
					t.Errorf("%d scripts of 10 ms and more, another client's PING took %v in 99 of 100 cases, want less than 20 ms", n, ping)
				}
			}
			t.Logf("%.1f calls in scripts for each of 200 owners, %.1f for each of 2,000 of one", apart, one)
			if one > 2*apart {
				t.Errorf("a call of one owner costs %.1f calls in scripts, one of many %.1f", one, apart)
			}
		})
	}
}
