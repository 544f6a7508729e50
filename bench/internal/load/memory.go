package load

import (
	"context"
	"fmt"
	"time"

	"github.com/relock-go/relock/bench/internal/rival"
)

// Memory measures what one lock takes in Redis, held and after its last unlock.
func (b *Bench) Memory(ctx context.Context) error {
	rivals := append(b.locks(), rival.RelockRW())
	fleets, err := b.open(rivals, 1, b.Server.Addr())
	if err != nil {
		return err
	}
	defer closeAll(fleets)
	s := Sample{Workload: "memory", Case: "1"}
	return b.interleave(ctx, fleets, s, func(ctx context.Context, f *fleet, s *Sample) error {
		name := b.name("memory")
		l := f.clients[0].Lock(name)
		if err := l.Lock(ctx); err != nil {
			return err
		}
		bytes, keys, _, err := b.keysOf(ctx, name)
		if err != nil {
			return err
		}
		s.Values["held bytes"], s.Values["held keys"] = float64(bytes), float64(keys)
		if err := l.Unlock(); err != nil {
			return err
		}
		bytes, keys, longest, err := b.keysOf(ctx, name)
		if err != nil {
			return err
		}
		s.Values["idle bytes"], s.Values["idle keys"] = float64(bytes), float64(keys)
		s.Values["idle for s"] = longest.Seconds()
		return nil
	})
}

// keysOf adds up the keys that contain name, and the longest time any has to live.
func (b *Bench) keysOf(ctx context.Context, name string) (bytes int64, keys int, longest time.Duration, err error) {
	it := b.Server.Admin.Scan(ctx, 0, "*"+name+"*", 10_000).Iterator()
	for it.Next(ctx) {
		n, err := b.Server.Admin.MemoryUsage(ctx, it.Val()).Result()
		if err != nil {
			return 0, 0, 0, err
		}
		left, err := b.Server.Admin.PTTL(ctx, it.Val()).Result()
		if err != nil {
			return 0, 0, 0, err
		}
		if left < 0 {
			return 0, 0, 0, fmt.Errorf("key %q would stay for ever", it.Val())
		}
		bytes, keys, longest = bytes+n, keys+1, max(longest, left)
	}
	return bytes, keys, longest, it.Err()
}
