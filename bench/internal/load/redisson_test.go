package load_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/relock-go/relock/bench/internal/load"
	"github.com/relock-go/relock/bench/internal/rival"
)

var besideRedisson = map[string]func(b *load.Bench, t *testing.T) error{
	"redisson pair": func(b *load.Bench, t *testing.T) error { return b.RedissonPairs(t.Context()) },
	"redisson hot": func(b *load.Bench, t *testing.T) error {
		return b.RedissonHot(t.Context(), load.Hot{Clients: 2, Each: 2})
	},
	"redisson fair": func(b *load.Bench, t *testing.T) error {
		return b.RedissonFair(t.Context(), load.Hot{Clients: 2, Each: 2})
	},
}

// TestWithoutAJVMRedissonsLayoutIsMeasuredAndRedissonLeftOut, and it is said.
func TestWithoutAJVMRedissonsLayoutIsMeasuredAndRedissonLeftOut(t *testing.T) {
	for name, run := range besideRedisson {
		t.Run(name, func(t *testing.T) {
			b, samples := small(t)
			b.Window = 100 * time.Millisecond // the first hold of a busy machine takes more than ten
			var said strings.Builder
			b.Note = func(format string, args ...any) { fmt.Fprintf(&said, format, args...) }
			if err := run(b, t); err != nil {
				t.Fatal(err)
			}
			if len(*samples) != 2 || !strings.Contains(said.String(), "left out: "+rival.Redisson().Name) {
				t.Errorf("%d samples, want relock in both layouts; it said %q", len(*samples), said.String())
			}
			for _, s := range *samples {
				wantFigures(t, s, rateOf(s))
			}
		})
	}
}

// TestRedissonIsMeasuredWhereAJVMIs is run by `make interop`, which has built its program.
func TestRedissonIsMeasuredWhereAJVMIs(t *testing.T) {
	version := os.Getenv("RELOCK_INTEROP")
	if version == "" {
		t.Skip("no Redisson: run make interop")
	}
	for name, run := range besideRedisson {
		t.Run(name, func(t *testing.T) {
			b, samples := small(t)
			b.Window = 100 * time.Millisecond
			b.Redisson = filepath.Join("..", "..", "..", "redisson", "interop", "out", version)
			if err := run(b, t); err != nil {
				t.Fatal(err)
			}
			if len(*samples) != 3 {
				t.Fatalf("%d samples, want one for each of 3", len(*samples))
			}
			for _, s := range *samples {
				wantFigures(t, s, rateOf(s))
				if s.Errors > 0 {
					t.Errorf("%s: %d errors: %s", s.Rival, s.Errors, s.Err)
				}
			}
		})
	}
}

func rateOf(s load.Sample) []string {
	if s.Workload == "redisson pair" {
		return []string{"pairs/s", "p50 us", "p99 us"}
	}
	return []string{"grants/s", "wait p50 ms", "longest wait ms", "Jain"}
}
