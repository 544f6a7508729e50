package load

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/relock-go/relock/bench/internal/rival"
)

// RW is a lock that is mostly read.
type RW struct {
	Clients, Each int
	Section       time.Duration
	WriteEvery    int // one of so many is a write
}

// readWrite gives each goroutine its two sides; for a rival without read locks
// they are the same.
type readWrite struct{ read, write rival.Lock }

// ReadMostly measures a read/write lock beside exclusive ones for the same work.
func (b *Bench) ReadMostly(ctx context.Context, rw RW) error {
	fleets, err := b.open(b.locks(), rw.Clients, b.Server.Addr())
	if err != nil {
		return err
	}
	ours := rival.RelockRW()
	rwFleet, err := b.open([]rival.Rival{ours}, rw.Clients, b.Server.Addr())
	if err != nil {
		closeAll(fleets)
		return err
	}
	fleets = append(rwFleet, fleets...)
	defer closeAll(fleets)
	s := Sample{Workload: "rw", Case: "4 x 16, 5 % writes, 1 ms"}
	return b.interleave(ctx, fleets, s, func(ctx context.Context, f *fleet, s *Sample) error {
		b.readMostly(ctx, f, rw, b.Window/4, &Sample{Values: map[string]float64{}})
		b.readMostly(ctx, f, rw, 2*b.Window, s)
		return nil
	})
}

func (b *Bench) readMostly(parent context.Context, f *fleet, rw RW, d time.Duration, s *Sample) {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	var reads, writes atomic.Int64
	var longestWrite atomic.Int64
	var errs tally
	var wg sync.WaitGroup
	name := b.name("rw")
	begin := time.Now()
	for i, c := range f.clients {
		for j := range rw.Each {
			sides := readWrite{c.Lock(name), nil}
			sides.write = sides.read
			if two, ok := sides.read.(rival.ReadLock); ok {
				sides.read = two.Reading()
			}
			wg.Go(func() {
				for n := i*rw.Each + j; ctx.Err() == nil; n++ {
					side, count := sides.read, &reads
					if n%rw.WriteEvery == 0 {
						side, count = sides.write, &writes
					}
					asked := time.Now()
					if err := side.Lock(ctx); err != nil {
						if ctx.Err() == nil {
							errs.add(err)
						}
						continue
					}
					if count == &writes {
						for waited := int64(time.Since(asked)); ; {
							if old := longestWrite.Load(); waited <= old || longestWrite.CompareAndSwap(old, waited) {
								break
							}
						}
					}
					count.Add(1)
					time.Sleep(rw.Section)
					if err := side.Unlock(); err != nil {
						errs.add(err)
					}
				}
			})
		}
	}
	_ = pause(ctx, d)
	elapsed := time.Since(begin)
	total := reads.Load() + writes.Load()
	cancel()
	wg.Wait()
	errs.into(s)
	s.Few = total < int64(2*rw.Clients*rw.Each)
	s.Values["holds/s"] = float64(total) / elapsed.Seconds()
	s.Values["reads/s"] = float64(reads.Load()) / elapsed.Seconds()
	s.Values["writes/s"] = float64(writes.Load()) / elapsed.Seconds()
	s.Values["longest write wait ms"] = millis(time.Duration(longestWrite.Load()))
}
