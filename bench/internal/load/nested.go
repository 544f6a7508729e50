package load

import (
	"context"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/bench/internal/rival"
)

// Names of what is measured of relock alone.
const (
	Outer        = "relock, outer pair"
	Nested       = "relock, nested pair"
	LocalReentry = "relock, nested pair, LocalReentry()"
)

// NestedPairs measures a pair inside a hold of the same owner, beside a pair that
// is not nested, by one goroutine.
func (b *Bench) NestedPairs(ctx context.Context) error {
	variants := []rival.Rival{{Name: Outer}, {Name: Nested}, {Name: LocalReentry}}
	var fleets []*fleet
	for _, v := range variants {
		fleets = append(fleets, &fleet{rival: v})
	}
	c, rdb, err := rival.OpenRelock(b.Server.Addr(), rival.Setup{TTL: ttl})
	if err != nil {
		return err
	}
	defer rdb.Close()
	defer c.Close() //nolint:errcheck // nothing is left to tell
	s := Sample{Workload: "nested", Case: "1"}
	return b.interleave(ctx, fleets, s, func(ctx context.Context, _ *fleet, s *Sample) error {
		opts := []relock.LockOption{relock.Owner("bench")}
		if s.Rival == LocalReentry {
			opts = append(opts, rival.LocalReentry())
		}
		l := c.NewLock(b.name("nested"), opts...)
		if s.Rival != Outer {
			if err := l.Lock(ctx); err != nil {
				return err
			}
		}
		if err := b.nested(ctx, l, s); err != nil {
			return err
		}
		if s.Rival == Outer {
			return nil
		}
		return l.Unlock()
	})
}

func (b *Bench) nested(ctx context.Context, l *relock.Lock, s *Sample) error {
	var warm, errs tally
	drive(ctx, []rival.Lock{l}, b.Window/5, &warm)
	before, err := b.Server.Counts(ctx)
	if err != nil {
		return err
	}
	took, elapsed := drive(ctx, []rival.Lock{l}, b.Window, &errs)
	after, err := b.Server.Counts(ctx)
	if err != nil {
		return err
	}
	warm.into(s)
	errs.into(s)
	did, pairs := after.Since(before), float64(took.pairs)
	s.Few = took.pairs < 20
	s.Values["pairs/s"] = pairs / elapsed.Seconds()
	// The mean beside the percentile: a clock is no good for what takes less than a microsecond.
	s.Values["mean ns"] = float64(elapsed/time.Nanosecond) / pairs
	s.percentile("p50 us", took.sorted, 50, micros)
	s.Values["commands/pair"] = float64(did.Commands(nil)) / pairs
	s.Values["server us/pair"] = did.ServerUsec(nil) / pairs
	return nil
}
