package check

import (
	"maps"
	"slices"
	"testing"
)

var workloads = []struct {
	kind  string
	named bool
}{{"plain", false}, {"plain", true}, {"fair", false}, {"fair", true}, {"rw", false}, {"rw", true}, {"fair rw", false}, {"fair rw", true}, {"semaphore", false}}

func TestCorrectHistoriesPass(t *testing.T) {
	runs := 1200
	if testing.Short() {
		runs = 240
	}
	var seen Report
	seen.Overlaps = map[string]int{}
	for seed := range runs {
		w := workloads[seed%len(workloads)]
		x := simulate(uint64(seed), w.kind, w.named, seed%3 == 0, 150)
		names, report := verdict(x.input())
		if len(names) > 0 {
			t.Fatalf("seed %d, %+v: a correct history is said to violate:\n%s", seed, w, report.Markdown())
		}
		seen.Orders += report.Orders
		seen.Waits += report.Waits
		seen.Stale += report.Stale
		seen.Losses += report.Losses
		seen.Ambiguous += report.Ambiguous
		seen.Reentries += report.Reentries
		seen.Operations += report.Operations
		seen.Segments += report.Segments
		for kind, n := range report.Overlaps {
			seen.Overlaps[kind] += n
		}
	}
	for what, n := range map[string]int{
		"turns": seen.Orders, "waits": seen.Waits, "stale effects": seen.Stale, "losses": seen.Losses, "ambiguous": seen.Ambiguous,
		"re-entries": seen.Reentries, "segments": seen.Segments, "overlaps": sum(seen.Overlaps),
	} {
		t.Logf("%s: %d", what, n)
		if n < runs/10 {
			t.Errorf("%d %s in %d runs: the simulation shows nothing", n, what, runs)
		}
	}
	if kinds := slices.Sorted(maps.Keys(seen.Overlaps)); len(kinds) != 2 {
		t.Errorf("overlaps are attributed to %q", kinds)
	}
}
