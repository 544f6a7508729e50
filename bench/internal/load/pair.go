package load

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/relock-go/relock/bench/internal/rival"
)

// samplesKept is for all goroutines of a window together.
const samplesKept = 1 << 20

// Pairs measures lock and unlock of a name that nobody else wants.
func (b *Bench) Pairs(ctx context.Context, goroutines int) error {
	rivals := slices.DeleteFunc(slices.Clone(b.Rivals), isFair)
	if goroutines == 1 {
		rivals = append(rivals, rival.RelockSemaphore(), rival.RelockSticky(), rival.Mutex())
	}
	fleets, err := b.open(rivals, 1, b.Server.Addr())
	if err != nil {
		return err
	}
	defer closeAll(fleets)
	s := Sample{Workload: "pair", Case: strconv.Itoa(goroutines)}
	return b.interleave(ctx, fleets, s, func(ctx context.Context, f *fleet, s *Sample) error {
		return b.pairs(ctx, f, goroutines, s)
	})
}

// isFair leaves out what differs from the plain lock only when somebody waits.
func isFair(r rival.Rival) bool { return r.Name == rival.RelockFair().Name }

func (b *Bench) pairs(ctx context.Context, f *fleet, goroutines int, s *Sample) error {
	locks := make([]rival.Lock, goroutines)
	for i := range locks {
		locks[i] = f.clients[0].Lock(b.name("pair"))
	}
	var warm tally
	drive(ctx, locks, b.Window/5, &warm)
	before, err := b.Server.Counts(ctx)
	if err != nil {
		return err
	}
	var errs tally
	took, elapsed := drive(ctx, locks, b.Window, &errs)
	after, err := b.Server.Counts(ctx)
	if err != nil {
		return err
	}
	warm.into(s)
	errs.into(s)
	pairs := float64(took.pairs)
	did := after.Since(before)
	s.Few = took.pairs < int64(10*goroutines)
	s.Values["pairs/s"] = pairs / elapsed.Seconds()
	// The mean beside the percentiles: reading the clock takes long beside a pair of less than a microsecond.
	s.Values["mean ns"] = float64(elapsed/time.Nanosecond) * float64(goroutines) / pairs
	s.percentile("p50 us", took.sorted, 50, micros)
	s.percentile("p99 us", took.sorted, 99, micros)
	s.Values["client CPU us/pair"] = micros(took.cpu) / pairs
	s.Values["commands/pair"] = float64(did.Commands(f.rival.Sends)) / pairs
	s.Values["bytes/pair"] = float64(did.In+did.Out) / pairs
	s.Values["server us/pair"] = did.ServerUsec(f.rival.Sends) / pairs
	return nil
}

type pairTimes struct {
	pairs  int64
	cpu    time.Duration // of this process
	sorted []time.Duration
}

// drive locks and unlocks every lock on a goroutine of its own for d.
func drive(ctx context.Context, locks []rival.Lock, d time.Duration, errs *tally) (all pairTimes, elapsed time.Duration) {
	var stop atomic.Bool
	kept := make([][]time.Duration, len(locks))
	counts := make([]int64, len(locks))
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i, l := range locks {
		kept[i] = make([]time.Duration, 0, min(samplesKept/len(locks), int(d/(5*time.Microsecond))+1))
		wg.Go(func() {
			<-start
			for !stop.Load() && ctx.Err() == nil {
				begin := time.Now()
				if err := pair(ctx, l); err != nil {
					errs.add(err)
					continue
				}
				counts[i]++
				if len(kept[i]) < cap(kept[i]) {
					kept[i] = append(kept[i], time.Since(begin))
				}
			}
		})
	}
	begin, cpu := time.Now(), cpuTime()
	close(start)
	_ = pause(ctx, d)
	stop.Store(true)
	wg.Wait()
	elapsed, all.cpu = time.Since(begin), cpuTime()-cpu
	for i := range locks {
		all.pairs += counts[i]
		all.sorted = append(all.sorted, kept[i]...)
	}
	slices.Sort(all.sorted)
	return all, elapsed
}

func pair(ctx context.Context, l rival.Lock) error {
	if err := l.Lock(ctx); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	if err := l.Unlock(); err != nil {
		return fmt.Errorf("unlock: %w", err)
	}
	return nil
}

// pause waits for d, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
