package cost_test

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// These tests hold what an operation costs, counted and not timed: commands on the
// network, bytes, commands inside of scripts, allocations, goroutines.

// costs are what a server has done.
type costs struct {
	calls map[string]float64
	bytes float64
}

var (
	statOfCommand = regexp.MustCompile(`(?m)^cmdstat_([a-z|]+):calls=(\d+)`)
	statOfNetwork = regexp.MustCompile(`(?m)^total_net_(?:in|out)put_bytes:(\d+)`)
)

// costOf returns what n operations cost, for each of them. Asking costs some bytes.
func costOf(t *testing.T, eye *redis.Client, n int, operate func()) costs {
	t.Helper()
	look := func() costs {
		c := costs{calls: map[string]float64{}}
		text, err := eye.InfoMap(t.Context(), "commandstats", "stats").Result()
		rig.Must(t, err)
		for name, stat := range text["Commandstats"] {
			m := statOfCommand.FindStringSubmatch(name + ":" + stat)
			count, _ := strconv.ParseFloat(m[2], 64)
			c.calls[m[1]] = count
		}
		for name, stat := range text["Stats"] {
			if m := statOfNetwork.FindStringSubmatch(name + ":" + stat); m != nil {
				count, _ := strconv.ParseFloat(m[1], 64)
				c.bytes += count
			}
		}
		return c
	}
	look()
	before := look()
	operate()
	after := look()
	got := costs{calls: map[string]float64{}, bytes: (after.bytes - before.bytes) / float64(n)}
	for name, calls := range after.calls {
		if d := calls - before.calls[name]; d > 0 && name != "info" {
			got.calls[name] = d / float64(n)
		}
	}
	return got
}

// within fails where something costs more than it may. What is not named may not
// be called at all.
func (c costs) within(t *testing.T, what string, calls map[string]float64, bytes float64) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(c.calls)) {
		if c.calls[name] > calls[name]+0.005 {
			t.Errorf("%s: %.3f calls of %s, want at most %v", what, c.calls[name], name, calls[name])
		}
	}
	if c.bytes > bytes || c.calls["evalsha"] > 0 && c.bytes < bytes*3/4 {
		t.Errorf("%s: %.0f bytes on the network, want at most %v, and not much less", what, c.bytes, bytes)
	}
}

// costly is one client on a server of its own, set up as is recommended.
func costly(t *testing.T, opts ...relock.Option) (c *relock.Client, eye *redis.Client, srv *redistest.RealServer) {
	t.Helper()
	srv = redistest.Real(t)
	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr(), ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = rdb.Close() })
	c = rig.Open(t, rdb, opts...)
	pairs(t, c.NewLock("warm"), 3)
	return c, srv.Client(t), srv
}

func pairs(t *testing.T, l *relock.Lock, n int) {
	t.Helper()
	for range n {
		rig.Must(t, l.Lock(context.Background()))
		rig.Must(t, l.Unlock())
	}
}

// Fails with one more redis.call in acquire's or release's usual case, with one
// more argument of a few bytes, and when a client subscribes or asks for each lock.
func TestALockAndUnlockCostTwoCommands(t *testing.T) {
	const n = 400
	c, eye, _ := costly(t)
	for name, opts := range map[string][]relock.LockOption{"plain": nil, "fair": {relock.Fair()}} {
		l := c.NewLock("a "+name, opts...)
		pairs(t, l, 1)
		costOf(t, eye, n, func() { pairs(t, l, n) }).within(t, name,
			map[string]float64{"evalsha": 2, "time": 1, "hmget": 2, "hset": 1, "hdel": 1, "pexpire": 1}, 640)
	}
}

// Fails when a nested lock asks for the lock anew instead of stating its count, and
// when LocalReentry asks at all.
func TestANestedLockAndUnlockCostNoMoreThanTheOuter(t *testing.T) {
	const n = 200
	c, eye, _ := costly(t)
	ctx := relock.WithOwner(context.Background(), "me")
	l, local := c.NewLock("nested"), c.NewLock("local", relock.LocalReentry())
	nest := func(l *relock.Lock) func() {
		return func() {
			for range n {
				rig.Must(t, l.Lock(ctx))
				rig.Must(t, l.Unlock())
			}
		}
	}
	rig.Must(t, l.Lock(ctx))
	rig.Must(t, local.Lock(ctx))
	nest(l)()
	costOf(t, eye, n, nest(l)).within(t, "nested",
		map[string]float64{"evalsha": 2, "hmget": 2, "hset": 2}, 480)
	costOf(t, eye, n, nest(local)).within(t, "nested locally", nil, 100)
	rig.Must(t, l.Unlock())
	rig.Must(t, local.Unlock())
}

// Two clients want one fair lock nearly all the time: most grants are by a release. What
// Redis does inside scripts is bounded for those, and for those of a lock that was free.
// Fails when a waiter asks again after its grant, when grants need a command, and with
// one more call in the hand-off.
func TestAHandOffBetweenClientsCostsTwoCommands(t *testing.T) {
	const n, free, handed = 200, 6, 19
	a, eye, srv := costly(t)
	b := rig.Open(t, srv.Client(t))
	pairs(t, b.NewLock("warm"), 3)
	run := func(n int) {
		var wg sync.WaitGroup
		for _, c := range []*relock.Client{a, b} {
			l := c.NewLock("hot", relock.Fair())
			wg.Go(func() { pairs(t, l, n) })
		}
		wg.Wait()
	}
	run(20)
	got := costOf(t, eye, 2*n, func() { run(n) })
	if got.calls["evalsha"] > 2.05 {
		t.Errorf("%.2f commands a grant, want 2", got.calls["evalsha"])
	}
	inside := 0.
	for name, calls := range got.calls {
		if name != "evalsha" {
			inside += calls
		}
	}
	share := got.calls["publish"] / 2 // each grant by a release is told, and that the holder before it was wanted
	if share < 0.1 {
		t.Fatalf("%.0f %% of the grants are by a release: too few to tell what one costs", 100*share)
	}
	if want := free + share*(handed-free); inside > want+0.1 {
		t.Errorf("%.2f calls in scripts a grant, want at most %.2f where %.0f %% are by a release: %v", inside, want, 100*share, got.calls)
	}
}

// In virtual time a turn lasts as long as its number of grants allows. Tokens come
// from the time that has passed: so holds take some.
// Fails when an anonymous call of a plain lock asks Redis by itself.
func TestGrantsWithinAProcessShareACommand(t *testing.T) {
	rig.Run(t, func(t *testing.T, s *rig.Lab) {
		const callers, each = 16, 60
		c, link := s.Linked()
		pairs(t, c.NewLock("warm"), 1)
		var commands atomic.Int64
		link.OnCommand(func(redistest.Command) redistest.Verdict { commands.Add(1); return redistest.Pass })
		var wg sync.WaitGroup
		for range callers {
			l := c.NewLock("hot")
			wg.Go(func() {
				for range each {
					rig.Must(t, l.Lock(context.Background()))
					virtual.Sleep(100 * time.Microsecond)
					rig.Must(t, l.Unlock())
				}
			})
		}
		wg.Wait()
		if got := float64(commands.Load()) / (callers * each); got > 0.1 {
			t.Errorf("%.3f commands a grant, want two for 33", got)
		}
	})
}

// manyKeys says that a script is to run on more than one lock.
func manyKeys(cmd redistest.Command) bool { return len(cmd.Args) > 2 && cmd.Args[2] != "1" }

// Fails when each lock is renewed by a command of its own.
func TestRenewalsOfManyLocksShareCommands(t *testing.T) {
	renewalsShareCommands(t, func(c *relock.Client, name string) *relock.Lock { return c.NewLock(name) })
}

func TestRenewalsOfManySemaphoresShareCommands(t *testing.T) {
	renewalsShareCommands(t, func(c *relock.Client, name string) *relock.Lock { return c.NewSemaphore(name, 3, relock.Weight(2)) })
}

func renewalsShareCommands(t *testing.T, newLock func(c *relock.Client, name string) *relock.Lock) {
	rig.Run(t, func(t *testing.T, s *rig.Lab) {
		const locks = 1000
		c, link := s.Linked()
		for i := range locks {
			rig.MustAcquire(t, newLock(c, "held "+strconv.Itoa(i)))
		}
		virtual.Sleep(11 * time.Second)
		synctest.Wait()
		var commands, hold atomic.Int64
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if rig.ScriptOf(cmd) != "" { // else it sets up one more connection
				commands.Add(1)
			}
			if rig.ScriptOf(cmd) == "hold" && !manyKeys(cmd) {
				hold.Add(1)
			}
			return redistest.Pass
		})
		virtual.Sleep(20 * time.Second) // two rounds
		synctest.Wait()
		if got := commands.Load(); got < 2*8 || got > 2*8+2 || hold.Load() > 0 {
			t.Errorf("%d commands for two renewals of %d locks, of which %d for one lock alone; want 8 a round", got, locks, hold.Load())
		}
	})
}

// A server that is too slow must not get more to do for it.
// Fails when the locks of a command that was not answered are tried again one by one.
func TestRenewalsThatAreTriedAgainShareCommands(t *testing.T) {
	t.Cleanup(rig.DrawAtRandom())
	rig.Run(t, func(t *testing.T, s *rig.Lab) {
		const locks = 128
		c, link := s.Linked()
		for i := range locks {
			rig.MustAcquire(t, c.NewLock("held "+strconv.Itoa(i)))
		}
		var renewed, hold atomic.Int64
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			switch {
			case rig.ScriptOf(cmd) != "hold":
			case !manyKeys(cmd):
				hold.Add(1)
			case renewed.Add(1) == 1:
				return redistest.SwallowReply
			}
			return redistest.Pass
		})
		virtual.Sleep(15 * time.Second)
		synctest.Wait()
		// The third is the script in full.
		if n := renewed.Load(); n < 2 || n > 3 || hold.Load() > 0 {
			t.Errorf("%d commands for all and %d for one lock alone, want 2 or 3, and 0", n, hold.Load())
		}
	})
}
