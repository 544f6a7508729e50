package load

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/relock-go/relock/bench/internal/host"
	"github.com/relock-go/relock/bench/internal/rival"
)

// The regimes.
const (
	Awake  = "cores kept awake"
	Asleep = "cores left to sleep"
)

type task struct {
	name string
	run  func(ctx context.Context) error
}

// All runs every workload whose name matches, in both regimes.
func (b *Bench) All(ctx context.Context, only *regexp.Regexp) error {
	for _, regime := range []string{Asleep, Awake} {
		if err := b.in(ctx, regime, only); err != nil {
			return err
		}
	}
	return nil
}

func (b *Bench) in(ctx context.Context, regime string, only *regexp.Regexp) error {
	b.Regime = regime
	if regime == Awake {
		s, err := host.KeepAwake()
		if err != nil {
			b.Note("left out: %s: %v", regime, err)
			return nil
		}
		defer s.Stop()
	}
	for _, t := range b.tasks() {
		if only != nil && !only.MatchString(t.name) {
			continue
		}
		b.Note("%s, %s", t.name, regime)
		if err := t.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return nil
}

// tasks are what is measured in each regime.
func (b *Bench) tasks() []task {
	all := []task{{"nested", b.NestedPairs}}
	for _, n := range b.Callers {
		all = append(all, task{fmt.Sprintf("pair %d", n), func(ctx context.Context) error { return b.Pairs(ctx, n) }})
	}
	for _, n := range b.Callers {
		all = append(all, task{fmt.Sprintf("elsewhere %d", n), func(ctx context.Context) error { return b.Elsewhere(ctx, n) }})
	}
	all = append(all, task{"several", b.Several}, task{"signal", b.Signals})
	for _, section := range []time.Duration{0, 2 * time.Millisecond} {
		for _, h := range []Hot{{1, 16, section}, {4, 16, section}, {32, 1, section}} {
			all = append(all, task{"hot " + h.Case(), func(ctx context.Context) error { return b.HotLock(ctx, h) }})
		}
	}
	all = append(all, task{"turns", func(ctx context.Context) error { return b.Turns(ctx, 0) }})
	h := Hot{Clients: 4, Each: 16}
	all = append(all, task{"redisson pair", b.RedissonPairs},
		task{"redisson hot " + h.Case(), func(ctx context.Context) error { return b.RedissonHot(ctx, h) }},
		task{"redisson fair " + h.Case(), func(ctx context.Context) error { return b.RedissonFair(ctx, h) }})
	if b.Regime == Awake {
		return all
	}
	// Where the network, the server or many goroutines are what is waited for, one
	// regime will do.
	for _, rtt := range []time.Duration{time.Millisecond, 10 * time.Millisecond} {
		all = append(all, task{"link " + rtt.String(), func(ctx context.Context) error { return b.HandOff(ctx, rtt) }})
	}
	all = append(all, task{"turns link", func(ctx context.Context) error { return b.Turns(ctx, time.Millisecond) }})
	all = append(all, task{"rw", func(ctx context.Context) error {
		return b.ReadMostly(ctx, RW{Clients: 4, Each: 16, Section: time.Millisecond, WriteEvery: 20})
	}})
	for _, n := range []int{10, 100, 1000, 10_000} {
		all = append(all, task{fmt.Sprintf("depth %d", n), func(ctx context.Context) error { return b.Depth(ctx, n) }})
	}
	all = append(all, task{"memory", b.Memory}, task{"held", b.heldSizes})
	return all
}

// heldSizes has rueidislock hold a tenth of what relock does: it renews each lock
// with a command, a goroutine and a timer of its own. The windows hold at least one
// renewal of each lock.
func (b *Bench) heldSizes(ctx context.Context) error {
	var all []HeldLocks
	for _, n := range b.HeldSizes {
		all = append(all,
			HeldLocks{Case: strconv.Itoa(n), Rival: rival.Relock(), Locks: n, TTL: b.HeldTTL, Renews: 1. / 3, Window: b.HeldTTL},
			HeldLocks{Case: strconv.Itoa(n), Rival: rival.Rueidislock(), Locks: n / 10, TTL: b.HeldTTL, Renews: 1. / 2, Window: b.HeldTTL})
	}
	return b.Held(ctx, all)
}
