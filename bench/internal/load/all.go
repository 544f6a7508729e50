package load

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/relock-go/relock/bench/internal/host"
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

func (b *Bench) tasks() []task {
	var all []task
	for _, n := range []int{1, 16, 256, 1024} {
		all = append(all, task{fmt.Sprintf("pair %d", n), func(ctx context.Context) error { return b.Pairs(ctx, n) }})
	}
	for _, section := range []time.Duration{0, 2 * time.Millisecond} {
		for _, h := range []Hot{{1, 16, section}, {4, 16, section}, {32, 1, section}} {
			all = append(all, task{"hot " + h.Case(), func(ctx context.Context) error { return b.HotLock(ctx, h) }})
		}
	}
	return all
}
