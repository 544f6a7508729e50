package conformance_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/rig"
)

// TestTCK_W65_ManyReaders: 5,000 readers at once do not overflow, where the TCK
// has 65,536 threads; in virtual time 200 do, since its server is slow. What one of them costs does not grow with the others.
func TestTCK_W65_ManyReaders(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		readers := 5000
		if g.virtual != nil {
			readers = 200
		}
		locks := make([]*relock.RWLock, readers)
		g.split(readers, func(i int) error {
			locks[i] = g.clients[i%2].NewRWLock(g.name, g.opts...)
			return locks[i].RLock(t.Context())
		})
		info, err := g.view().Info(t.Context())
		g.ok(err)
		if len(info.Holders) != readers {
			t.Errorf("%d readers, want %d", len(info.Holders), readers)
		}
		w := g.thread("w")
		writes := w.begin(w.Lock)
		g.queue("w")
		g.split(readers-1, func(i int) error { return locks[i].RUnlock() })
		writes.waits()
		g.ok(locks[readers-1].RUnlock())
		g.ok(writes.ends())
		g.held("w w1")
		g.ok(w.Unlock())
	})
}

// split has a few goroutines do the work of 0 to n-1.
func (g *ground) split(n int, work func(i int) error) {
	g.t.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := work(i); err != nil {
					g.t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// TestJTREG_Count: three locks, entered ten deep in a random order and manner by
// one owner; and read holds of ten owners whose counts are exact, each and in all.
func TestJTREG_Count(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		seed := rand.Uint64()
		rng := rand.New(rand.NewPCG(seed, 0))
		for range 4 {
			g.interleave(rng)
		}
		total := 0
		var readers []*thread
		for i := range 10 {
			th := g.thread(fmt.Sprint("t", i))
			for range i + 1 {
				g.ok(waysToLock[rng.IntN(len(waysToLock))](th, th.RLocker()))
			}
			total += i + 1
			readers = append(readers, th)
			g.reads(total)
		}
		for i, th := range readers {
			if got := th.RLocker().HoldCount(); got != i+1 {
				t.Errorf("%s has %d holds, want %d", th.owner, got, i+1)
			}
			for range i + 1 {
				g.ok(th.RUnlock())
				total--
			}
			g.is(th.RUnlock(), relock.ErrNotHeld)
			g.reads(total)
		}
		g.held()
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
}

// interleave enters an exclusive lock and both sides of a read/write lock ten
// times, the read side only after the write side or by itself, and leaves them
// in the reverse order, with every count exact at every step.
func (g *ground) interleave(rng *rand.Rand) {
	g.t.Helper()
	th := g.thread("me")
	excl := g.clients[rng.IntN(2)].NewLock(g.name+":x", g.opts...)
	sides := []*relock.Lock{excl, th.WLocker(), th.RLocker()}
	var counts [3]int
	var entered []int
	for range 10 {
		i := rng.IntN(3)
		err := waysToLock[rng.IntN(len(waysToLock))](th, sides[i])
		if i == 1 && counts[1] == 0 && counts[2] > 0 {
			g.is(err, relock.ErrUpgrade)
			continue
		}
		g.ok(err)
		counts[i]++
		entered = append(entered, i)
		g.countsAre(sides, counts)
	}
	for len(entered) > 0 {
		i := entered[len(entered)-1]
		g.ok(sides[i].Unlock())
		counts[i]--
		entered = entered[:len(entered)-1]
		g.countsAre(sides, counts)
	}
	for _, l := range sides {
		g.is(l.Unlock(), relock.ErrNotHeld)
	}
}

// countsAre asserts how often the owner "me" holds an exclusive lock and the two sides,
// writing and reading, of a read/write lock, as the handles and Redis count it.
func (g *ground) countsAre(sides []*relock.Lock, counts [3]int) {
	g.t.Helper()
	for i, l := range sides {
		if l.HoldCount() != counts[i] {
			g.t.Fatalf("after %v: side %d is held %d times", counts, i, l.HoldCount())
		}
	}
	switch n := counts[1] + counts[2]; {
	case counts[1] > 0:
		g.held(fmt.Sprint("me w", n))
	case n > 0:
		g.held(fmt.Sprint("me r", n))
	default:
		g.held()
	}
}

// reads asserts how many read holds there are in all.
func (g *ground) reads(want int) {
	g.t.Helper()
	info, err := g.view().Info(g.t.Context())
	g.ok(err)
	got := 0
	for _, h := range info.Holders {
		got += h.Holds
	}
	if got != want {
		g.t.Errorf("%d read holds, want %d", got, want)
	}
}

// TestJTREG_Bug6571733: a writer that gave up leaves no ghost in the queue that
// would hold back readers.
func TestJTREG_Bug6571733(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		me, w, r := g.thread("me"), g.thread("w"), g.thread("r")
		g.ok(me.RLock(me.ctx))
		for _, wait := range []time.Duration{0, 20 * time.Millisecond} {
			g.tries(false)(w.TryLock(w.ctx, wait))
			g.queue()
			g.tries(true)(r.TryRLock(r.ctx, 0))
			g.held("me r1", "r r1")
			g.ok(r.RUnlock())
		}
		g.ok(me.RUnlock())
	})
}

// goroutinesOfClients counts the goroutines that run code of the library. A pool opens connections when it likes, and the
// proxy of a hosted server has goroutines for each of them: these do not count.
func goroutinesOfClients() (n int) {
	all := make([]byte, 1<<20)
	all = all[:runtime.Stack(all, true)]
	for stack := range strings.SplitSeq(string(all), "\n\n") {
		if strings.Contains(stack, "relock-go/relock.") && !strings.Contains(stack, "/redistest.") {
			n++
		}
	}
	return n
}

// TestJTREG_TimedAcquireLeak: waits that end in vain leave nothing behind, not in
// Redis, not in the client, and no goroutine.
func TestJTREG_TimedAcquireLeak(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		me := g.threadOf(g.clients[0], "me")
		g.ok(me.Lock(me.ctx))
		other := g.clients[1].NewRWLock(g.name, g.opts...)
		inVain := func(rounds int) (goroutines int) {
			for range rounds {
				g.tries(false)(other.TryLock(t.Context(), time.Millisecond))
				g.tries(false)(other.TryRLock(t.Context(), time.Millisecond))
			}
			g.queue()
			g.until(func() (bool, string) {
				n := rig.Sessions(g.clients[1]) + rig.Rooms(g.clients[1])
				return n == 0, fmt.Sprintf("%d sessions and rooms are left", n)
			})
			return goroutinesOfClients()
		}
		before := inVain(20)
		inVain(60)
		// A leak leaves a goroutine for each of 120 calls.
		g.until(func() (bool, string) {
			now := goroutinesOfClients()
			return now <= before+5, fmt.Sprintf("%d goroutines, %d before", now, before)
		})
		keys := key.For("relock", g.name)
		fields := g.rdb.HGetAll(t.Context(), keys.Hash).Val()
		maps.DeleteFunc(fields, func(f, _ string) bool { return f[:2] == "e:" || f[:2] == "n:" }) // ended nonces, for 10 s
		if len(fields) > 6 {
			t.Errorf("fields are left: %v", fields)
		}
		if n := g.rdb.ZCard(t.Context(), keys.Queue).Val(); n != 0 {
			t.Errorf("%d members are left in the queue", n)
		}
		if channels := g.rdb.PubSubChannels(t.Context(), "*"+rig.ID(g.clients[1])+"*").Val(); len(channels) > 1 {
			t.Errorf("subscribed to %q", channels)
		}
		g.ok(me.Unlock())
	})
}
