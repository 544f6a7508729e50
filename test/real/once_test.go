package real_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

const (
	ticked  = 100 * time.Millisecond // the interval
	tickTTL = 100 * time.Millisecond
)

// tick calls Once whenever an interval begins by a clock of the child's own, which is
// ahead by so much, until the child dies. Redis counts what ran in each interval, and
// knows those in which a call of Once began and ended.
func (a *agent) tick(o order) response {
	ahead := time.Duration(o.N)
	go func() {
		for ctx := context.Background(); ; {
			mine := time.Now().Add(ahead)
			<-time.After(mine.Truncate(ticked).Add(ticked).Sub(mine))
			before := a.interval(ctx)
			_, _ = a.client.Once(ctx, o.Lock, ticked, func(ctx context.Context) error {
				h, _ := relock.FromContext(ctx, o.Lock)
				granted := h.Token() / int64(ticked) // a token is the instant of its grant
				return a.rdb.HIncrBy(ctx, "ran", strconv.FormatInt(granted, 10), 1).Err()
			}, relock.TTL(tickTTL))
			if before == a.interval(ctx) {
				a.rdb.SAdd(ctx, "tried", before)
			}
		}
	}()
	return response{}
}

// interval is the number of the one that it is by the server's clock; of each failure
// another one that it never is.
func (a *agent) interval(ctx context.Context) int64 {
	now, err := a.rdb.Time(ctx).Result()
	if err != nil {
		return -rand.Int64()
	}
	return now.UnixMicro() / ticked.Microseconds()
}

// tickers are processes whose clocks differ by up to half the interval.
type tickers struct {
	t        *testing.T
	srv      *redistest.RealServer
	rdb      *redis.Client
	children [5]*child
	killed   map[int64]bool // intervals in which one was, or in which its lease may have lasted
}

func (k *tickers) begin(i int) {
	k.children[i] = spawn(k.t, k.srv.Addr())
	k.children[i].do(order{Do: "tick", Lock: "job", N: int64(ticked) * int64(i-2) / 4})
}

// now is the number of the interval that it is.
func (k *tickers) now() int64 {
	now, err := k.rdb.Time(k.t.Context()).Result()
	rig.Must(k.t, err)
	return now.UnixMicro() / ticked.Microseconds()
}

// replace kills a process at random, and begins another.
func (k *tickers) replace() {
	i := rand.IntN(len(k.children))
	<-time.After(rand.N(ticked))
	before := k.now()
	k.children[i].kill()
	for of := before; of <= k.now()+1; of++ {
		k.killed[of] = true
	}
	k.begin(i)
}

// Five processes are killed and replaced at random. An interval without a run is one that
// a machine with much else to do has overslept, or that was spent by a process with which
// it was killed.
// Fails when an interval does not begin by the clock of the server, and when whoever
// restarts runs it again.
func TestOnceRunsOnceInEachIntervalOverProcesses(t *testing.T) {
	t.Parallel() // it waits more than it works
	const intervals = 200
	srv := redistest.Real(t)
	k := &tickers{t: t, srv: srv, rdb: srv.Client(t), killed: map[int64]bool{}}
	for i := range k.children {
		k.begin(i)
	}
	first := k.now() + 1
	for kills := time.NewTicker(7 * ticked); k.now() < first+intervals; <-kills.C {
		k.replace()
	}
	ran, runs := k.rdb.HGetAll(t.Context(), "ran").Val(), 0
	for of := first; of < first+intervals; of++ {
		name := strconv.FormatInt(of, 10)
		n, _ := strconv.Atoi(ran[name])
		runs += n
		if tried := k.rdb.SIsMember(t.Context(), "tried", name).Val(); n > 1 || n == 0 && tried && !k.killed[of] {
			t.Errorf("interval %d was run %d times; tried: %v", of-first, n, tried)
		}
	}
	t.Logf("%d runs in %d intervals", runs, intervals)
	if runs < intervals/2 {
		t.Errorf("%d runs in %d intervals: too few to say anything", runs, intervals)
	}
}
