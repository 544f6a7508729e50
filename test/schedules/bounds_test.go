package schedules_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

const (
	dead    = 10_000
	perCall = 250
)

// deadCrowd is the queue of a lock of a real server: miniredis sorts it for each command.
type deadCrowd struct {
	t    *testing.T
	rdb  *redis.Client
	keys key.Keys
}

// bury puts dead entries into the queue, from the given place on.
func (c *deadCrowd) bury(place int64) { c.t.Helper(); c.buryUntil(place, -time.Hour, dead) }

// buryUntil is bury for n entries whose leases end so long from now.
func (c *deadCrowd) buryUntil(place int64, lease time.Duration, n int) {
	c.t.Helper()
	ctx, until := c.t.Context(), time.Now().Add(lease).UnixMilli()
	pipe := c.rdb.TxPipeline()
	for i := range int64(n) {
		nonce := fmt.Sprintf("dead%018d", i)
		pipe.ZAdd(ctx, c.keys.Queue, redis.Z{Score: float64(place + i), Member: nonce}, redis.Z{Score: float64(-until), Member: "-" + nonce})
		pipe.HSet(ctx, c.keys.Hash, "w:"+nonce, fmt.Sprintf("%d 0 %d 1 1 0 30000 1 %s %022d o:~owner%d", until, place+i, nonce, i, i))
	}
	queued, _ := strconv.Atoi(c.rdb.HGet(ctx, c.keys.Hash, "crowd").Val())
	pipe.HSet(ctx, c.keys.Hash, "crowd", queued+n)
	if _, err := pipe.Exec(ctx); err != nil {
		c.t.Fatal(err)
	}
}

// entries is the length of the queue, the dead included.
func (c *deadCrowd) entries() int { return int(c.rdb.ZCard(c.t.Context(), c.keys.Queue).Val()) / 2 }

// Fails when settle drops any number of dead entries in one call.
func TestF17DeadEntriesAheadGoABoundedNumberPerCall(t *testing.T) {
	srv := redistest.Real(t)
	c := &deadCrowd{t: t, rdb: srv.Client(t), keys: key.For("relock", "l")}
	a, b := rig.RealActor(t, srv), rig.RealActor(t, srv)
	held, err := a.NewLock("l").Acquire(t.Context())
	rig.Must(t, err)
	got := make(chan error, 1)
	go func() { got <- b.NewLock("l").Lock(t.Context()) }()
	rig.Queued(t, a.NewLock("l"), 1)
	c.bury(1)
	before := a.Sent("release")
	rig.End(t, held)
	rig.Must(t, <-got)
	if n := a.Sent("release") - before; n < dead/perCall {
		t.Errorf("%d entries went with %d calls, want up to %d in one", dead, n, perCall)
	}
	if n := c.entries(); n != 0 {
		t.Errorf("%d entries are left", n)
	}
}

// Fails when heartbeats leave dead entries where they are.
func TestF17DeadEntriesBehindTheHeadGoThoughTheHolderStays(t *testing.T) {
	srv := redistest.Real(t)
	c := &deadCrowd{t: t, rdb: srv.Client(t), keys: key.For("relock", "l")}
	a, b := rig.RealActor(t, srv), rig.RealActor(t, srv)
	held, err := a.NewLock("l").Acquire(t.Context())
	rig.Must(t, err)
	got := make(chan error, 1)
	go func() { got <- b.NewLock("l", relock.TTL(3*time.Second)).Lock(t.Context()) }()
	rig.Queued(t, a.NewLock("l"), 1)
	sent := func() int { return b.Sent("acquire") + b.Sent("release") }
	before := sent()
	c.bury(time.Now().Add(time.Hour).UnixMicro())
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(20 * time.Second); c.entries() != 1; <-again.C {
		if time.Now().After(deadline) {
			t.Fatalf("%d entries, want that of the living waiter alone", c.entries())
		}
	}
	if n := sent() - before; n < dead/perCall {
		t.Errorf("%d entries went with %d calls, want up to %d in one", dead, n, perCall)
	}
	rig.End(t, held)
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// Fails when a script's first write is one that Redis refuses when it is out of memory.
func TestF17LocksWorkOnWhenRedisIsOutOfMemory(t *testing.T) {
	srv := redistest.Real(t)
	renewed := make(chan relock.Event, 1000)
	a := rig.RealActor(t, srv, relock.Trace(relock.Hooks{Renewed: func(ev relock.Event) { renewed <- ev }}))
	b := rig.RealActor(t, srv)
	ctx, cancel := context.WithTimeout(relock.WithOwner(t.Context(), "w"), 20*time.Second)
	defer cancel()
	lock := a.NewLock("l", relock.TTL(3*time.Second))
	outer, err := lock.Acquire(ctx)
	rig.Must(t, err)
	beside, err := rig.RealActor(t, srv).NewLock("l").Acquire(ctx) // the same owner
	rig.Must(t, err)
	waits := rig.Beside(func() error {
		return b.NewLock("l", relock.TTL(1500*time.Millisecond)).Lock(relock.WithOwner(ctx, "other"))
	})
	rig.Queued(t, lock, 1)
	full(t, srv)

	nested, err := lock.Acquire(ctx)
	if err != nil {
		t.Fatalf("nested lock: %v", err)
	}
	rig.End(t, nested)
	rig.End(t, beside)
	for range 2 {
		select {
		case <-renewed:
		case <-ctx.Done():
			t.Fatal("no renewal")
		}
	}
	// A waiter of 1.5 s whose heartbeats fail is dead by now.
	if info, err := lock.Info(ctx); err != nil || info.Waiters != 1 {
		t.Errorf("info %+v, %v, want one living waiter", info, err)
	}
	rig.End(t, outer)
	rig.Must(t, <-waits)
}

// Fails when the first write of a release is one that Redis refuses when it is out of
// memory: a copy of the request would be granted later, to nobody.
func TestF17NonceIsEndedWhenRedisIsOutOfMemory(t *testing.T) {
	srv := redistest.Real(t)
	r := rig.Raw{T: t, Redis: srv.Client(t), ID: "client"}
	r.Ask(rig.NonceOf('a'), "~a", time.Minute, 1, 0)
	full(t, srv)
	r.Release(rig.NonceOf('b'), "~b", time.Now().Add(10*time.Second).UnixMilli())
	rig.Must(t, r.Redis.ConfigSet(t.Context(), "maxmemory", "0").Err())
	r.Release(rig.NonceOf('a'), "~a", 0)
	r.Ask(rig.NonceOf('b'), "~b", time.Minute, 1, 0)
	if n := r.Redis.HExists(t.Context(), key.For("relock", "l").Hash, "holder").Val(); n {
		t.Error("a nonce that had ended was granted the lock")
	}
}

// full leaves a server no memory, and makes sure that it says so.
func full(t *testing.T, srv *redistest.RealServer) {
	t.Helper()
	rdb := srv.Client(t)
	for _, set := range [][2]string{{"maxmemory-policy", "noeviction"}, {"maxmemory", "1"}} {
		rig.Must(t, rdb.ConfigSet(t.Context(), set[0], set[1]).Err())
	}
	if err := rdb.Set(t.Context(), "more", "x", 0).Err(); err == nil || !redis.HasErrorPrefix(err, "OOM") {
		t.Fatalf("SET: %v, want OOM", err)
	}
}
