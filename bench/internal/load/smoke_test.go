package load_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/relock-go/relock/bench/internal/load"
	"github.com/relock-go/relock/bench/internal/rival"
)

// A workload is run at its smallest.
type workload struct {
	name   string
	run    func(b *load.Bench, ctx context.Context) error
	rivals []string // that are measured
	above0 []string // metrics
}

var plain, fair, rw, ping = rival.Relock().Name, rival.RelockFair().Name, rival.RelockRW().Name, rival.Ping().Name

// locks are the names of all that are locks.
func locks() (names []string) {
	for _, r := range rival.All() {
		if !r.Floor {
			names = append(names, r.Name)
		}
	}
	return names
}

func workloads() []workload {
	noFair := slices.DeleteFunc(locks(), func(n string) bool { return n == fair })
	return []workload{
		{
			"pair", func(b *load.Bench, ctx context.Context) error { return b.Pairs(ctx, 4) },
			slices.Concat(noFair, []string{ping}),
			[]string{"pairs/s", "p50 us", "p99 us", "server us/pair", "commands/pair", "bytes/pair"},
		},
		{
			"elsewhere", func(b *load.Bench, ctx context.Context) error { return b.Elsewhere(ctx, 4) },
			[]string{plain, rival.RelockSentinel().Name, rival.RelockCluster().Name},
			[]string{"pairs/s", "p50 us", "p99 us"},
		},
		{
			"several", (*load.Bench).Several,
			[]string{plain, rival.RelockMulti().Name, rival.RelockQuorum().Name, rival.RedsyncQuorum().Name},
			[]string{"pairs/s", "p50 us"},
		},
		{"signal", (*load.Bench).Signals, []string{fair, rival.RelockCond().Name}, []string{"hand-off p50 us"}},
		{"nested", (*load.Bench).NestedPairs, []string{load.Outer, load.Nested, load.LocalReentry}, []string{"mean ns", "pairs/s"}},
		{
			"hot", func(b *load.Bench, ctx context.Context) error { return b.HotLock(ctx, load.Hot{Clients: 2, Each: 2}) },
			locks(),
			[]string{"grants/s", "gap p50 us", "wait p50 ms", "longest wait ms", "Jain", "commands/grant", "bytes/grant"},
		},
		{
			"hot with sections", func(b *load.Bench, ctx context.Context) error {
				return b.HotLock(ctx, load.Hot{Clients: 2, Each: 1, Section: time.Millisecond})
			},
			locks(),
			[]string{"grants/s"},
		},
		{
			"turns", func(b *load.Bench, ctx context.Context) error { return b.Turns(ctx, time.Millisecond) },
			[]string{plain, rival.RelockSticky().Name},
			[]string{"hand-off p50 us", "unlock p50 us", "wait p50 us", "unlock, wait p50 us", "at once p50 us"},
		},
		{"link", func(b *load.Bench, ctx context.Context) error { return b.HandOff(ctx, time.Millisecond) }, slices.Concat(locks(), []string{ping}), nil},
		{"rw", func(b *load.Bench, ctx context.Context) error { return readMostly(ctx, b) }, slices.Concat(locks(), []string{rw}), []string{"holds/s"}},
		{"depth", func(b *load.Bench, ctx context.Context) error { return b.Depth(ctx, 50) }, []string{fair}, []string{"server us/hand-off", "hand-offs/s"}},
		{"memory", (*load.Bench).Memory, slices.Concat(locks(), []string{rw}), []string{"held bytes", "held keys"}},
		// 20 locks are too few for a figure of memory.
		{"held", func(b *load.Bench, ctx context.Context) error { return held(ctx, b) }, []string{plain, rival.Rueidislock().Name}, []string{"locks", "commands/s"}},
	}
}

func readMostly(ctx context.Context, b *load.Bench) error {
	b.Window = 50 * time.Millisecond // the first hold of a busy machine takes more than ten
	return b.ReadMostly(ctx, load.RW{Clients: 2, Each: 2, Section: time.Millisecond, WriteEvery: 4})
}

func held(ctx context.Context, b *load.Bench) error {
	return b.Held(ctx, []load.HeldLocks{
		{Case: "200", Rival: rival.Relock(), Locks: 200, TTL: b.HeldTTL, Renews: 1. / 3, Window: b.HeldTTL},
		{Case: "200", Rival: rival.Rueidislock(), Locks: 20, TTL: b.HeldTTL, Renews: 1. / 2, Window: b.HeldTTL},
	})
}

// TestEveryWorkloadMeasuresEveryLockWithoutErrors asserts that there are figures,
// not what they are; errors of other libraries are theirs.
func TestEveryWorkloadMeasuresEveryLockWithoutErrors(t *testing.T) {
	for _, w := range workloads() {
		t.Run(w.name, func(t *testing.T) {
			b, samples := small(t)
			if err := w.run(b, t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, name := range w.rivals {
				i := slices.IndexFunc(*samples, func(s load.Sample) bool { return s.Rival == name })
				if i < 0 {
					t.Errorf("nothing was measured of %s", name)
					continue
				}
				wantFigures(t, (*samples)[i], w.above0)
			}
			if len(*samples) != len(w.rivals) {
				t.Errorf("%d samples of one round, want one for each of %d", len(*samples), len(w.rivals))
			}
		})
	}
}

func wantFigures(t *testing.T, s load.Sample, above0 []string) {
	t.Helper()
	if s.Errors > 0 && !strings.HasPrefix(s.Rival, plain) {
		// It is counted and published; a rival that misses a message does not stop this project.
		t.Logf("%s: %d errors, the first: %s", s.Rival, s.Errors, s.Err)
		return
	}
	if s.Errors > 0 {
		t.Errorf("%s: %d errors, the first: %s", s.Rival, s.Errors, s.Err)
	}
	for _, m := range above0 {
		if v := s.Values[m]; !(v > 0) || math.IsInf(v, 0) {
			t.Errorf("%s: %s is %v", s.Rival, m, v)
		}
	}
}

// TestHandOffOverALinkTakesItsRoundTrip would fail if the links had no delay.
func TestHandOffOverALinkTakesItsRoundTrip(t *testing.T) {
	b, samples := small(t)
	b.Rivals = []rival.Rival{rival.Relock(), rival.Ping()}
	if err := b.HandOff(t.Context(), 8*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	for _, s := range *samples {
		for metric, us := range s.Values {
			if us < 8000 {
				t.Errorf("%s: %s is %.0f, less than the link's round trip", s.Rival, metric, us)
			}
		}
		if len(s.Values) == 0 || s.Errors > 0 {
			t.Errorf("%s: values %v, %d errors (%s)", s.Rival, s.Values, s.Errors, s.Err)
		}
	}
}

// TestRenewalsOfHeldLocksAreSeen would fail if the hook or the window missed them.
func TestRenewalsOfHeldLocksAreSeen(t *testing.T) {
	b, samples := small(t)
	one := load.HeldLocks{Case: "30", Rival: rival.Relock(), Locks: 30, TTL: 600 * time.Millisecond, Renews: 1. / 3, Window: 600 * time.Millisecond}
	if err := b.Held(t.Context(), []load.HeldLocks{one}); err != nil {
		t.Fatal(err)
	}
	if got := (*samples)[0].Values["renewals/s"] * 0.6; got < 30 {
		t.Errorf("%.0f renewals of 30 locks in a TTL, each renewed after a third of it", got)
	}
}

func TestAwakeRegimeRunsAndEnds(t *testing.T) {
	b, samples := small(t)
	b.Rivals = b.Rivals[:1]
	if err := b.All(t.Context(), regexpOf("^(nested|pair 1)$")); err != nil {
		t.Fatal(err)
	}
	for _, regime := range []string{load.Asleep, load.Awake} {
		if !slices.ContainsFunc(*samples, func(s load.Sample) bool { return s.Regime == regime }) {
			t.Errorf("nothing was measured with %s", regime)
		}
	}
}
