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
	var did readsAndWrites
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
					if n%rw.WriteEvery == 0 {
						did.write(ctx, sides.write, rw.Section)
					} else {
						did.read(ctx, sides.read, rw.Section)
					}
				}
			})
		}
	}
	_ = pause(ctx, d)
	elapsed := time.Since(begin)
	reads, writes := did.reads.Load(), did.writes.Load()
	cancel()
	wg.Wait()
	did.errs.into(s)
	s.Few = reads+writes < int64(2*rw.Clients*rw.Each)
	s.Values["holds/s"] = float64(reads+writes) / elapsed.Seconds()
	s.Values["reads/s"] = float64(reads) / elapsed.Seconds()
	s.Values["writes/s"] = float64(writes) / elapsed.Seconds()
	s.Values["longest write wait ms"] = millis(time.Duration(did.longestWrite.Load()))
}

// readsAndWrites is what the goroutines of a run have done.
type readsAndWrites struct {
	reads, writes atomic.Int64
	longestWrite  atomic.Int64 // the longest wait for one, in ns
	errs          tally
}

func (did *readsAndWrites) read(ctx context.Context, side rival.Lock, section time.Duration) {
	if did.lock(ctx, side) {
		did.reads.Add(1)
		did.work(side, section)
	}
}

func (did *readsAndWrites) write(ctx context.Context, side rival.Lock, section time.Duration) {
	asked := time.Now()
	if !did.lock(ctx, side) {
		return
	}
	waited := int64(time.Since(asked))
	for old := did.longestWrite.Load(); waited > old && !did.longestWrite.CompareAndSwap(old, waited); {
		old = did.longestWrite.Load()
	}
	did.writes.Add(1)
	did.work(side, section)
}

// lock tells whether side is held now. The end of the run is no error.
func (did *readsAndWrites) lock(ctx context.Context, side rival.Lock) bool {
	err := side.Lock(ctx)
	if err != nil && ctx.Err() == nil {
		did.errs.add(err)
	}
	return err == nil
}

func (did *readsAndWrites) work(side rival.Lock, section time.Duration) {
	time.Sleep(section)
	if err := side.Unlock(); err != nil {
		did.errs.add(err)
	}
}
