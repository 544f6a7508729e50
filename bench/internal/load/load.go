// Package load is the workloads.
package load

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/relock-go/relock/bench/internal/host"
	"github.com/relock-go/relock/bench/internal/rival"
	"github.com/relock-go/relock/bench/internal/stat"
)

// Sample is what one round of one case gave for one rival.
type Sample struct {
	Workload, Case, Regime, Rival string
	Round                         int
	Values                        map[string]float64
	Errors                        int64
	Err                           string // the first one
	Few                           bool   // too little happened for the values to mean much
}

// Bench is one run.
type Bench struct {
	Server    *host.Server
	Rivals    []rival.Rival
	Rounds    int
	Window    time.Duration // of the shortest workloads; others take a multiple
	Regime    string        // as which samples are noted
	Callers   []int         // numbers of them that lock and unlock at a time
	HeldSizes []int         // numbers of locks held at a time
	Redisson  string        // folder of its program for a JVM; "": it is left out
	HeldTTL   time.Duration // of those; each size takes about twice as long
	Keep      func(Sample)
	Note      func(format string, args ...any) // progress
	serial    atomic.Int64
}

// ttl is long enough for no lease to end within a window.
const ttl = 30 * time.Second

// name makes a lock's name that no window before has used.
func (b *Bench) name(what string) string { return fmt.Sprintf("bench/%s/%d", what, b.serial.Add(1)) }

// locks are the rivals that lock.
func (b *Bench) locks() (out []rival.Rival) {
	for _, r := range b.Rivals {
		if !r.Floor {
			out = append(out, r)
		}
	}
	return out
}

// A fleet is the clients of one rival, opened once for all rounds of a case.
type fleet struct {
	rival   rival.Rival
	clients []rival.Client
}

func (b *Bench) open(rivals []rival.Rival, clients int, addr string) (fleets []*fleet, err error) {
	for _, r := range rivals {
		f := &fleet{rival: r}
		fleets = append(fleets, f)
		for range clients {
			c, err := r.Open(addr, rival.Setup{TTL: ttl})
			if err != nil {
				closeAll(fleets)
				return nil, fmt.Errorf("opening %s: %w", r.Name, err)
			}
			f.clients = append(f.clients, c)
		}
	}
	return fleets, nil
}

func closeAll(fleets []*fleet) {
	for _, f := range fleets {
		for _, c := range f.clients {
			_ = c.Close()
		}
	}
}

// interleave runs every round of a case for each fleet in turn, and each round
// begins with another fleet, so that what disturbs one disturbs all.
func (b *Bench) interleave(ctx context.Context, fleets []*fleet, s Sample, measure func(context.Context, *fleet, *Sample) error) error {
	s.Regime = b.Regime
	for round := range b.Rounds {
		for i := range fleets {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			f := fleets[(i+round)%len(fleets)]
			one := s
			one.Rival, one.Round, one.Values = f.rival.Name, round, map[string]float64{}
			runtime.GC()
			if err := measure(ctx, f, &one); err != nil {
				return fmt.Errorf("%s, %s, %s: %w", s.Workload, s.Case, f.rival.Name, err)
			}
			b.Keep(one)
		}
	}
	return nil
}

// tally counts errors by any number of goroutines.
type tally struct {
	n     atomic.Int64
	first atomic.Pointer[string]
}

func (t *tally) add(err error) {
	if t.n.Add(1) == 1 {
		text := err.Error()
		t.first.Store(&text)
	}
}

func (t *tally) into(s *Sample) {
	s.Errors += t.n.Load()
	if first := t.first.Load(); first != nil && s.Err == "" {
		s.Err = *first
	}
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// percentile notes one of what was measured, if anything was.
func (s *Sample) percentile(metric string, sorted []time.Duration, p float64, unit func(time.Duration) float64) {
	if len(sorted) > 0 {
		s.Values[metric] = unit(stat.Percentile(sorted, p))
	}
}
