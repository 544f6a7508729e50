package load

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/bench/internal/rival"
)

// Depth measures what the server does for each hand-off with so many waiters in
// the queue of a fair lock, of which every one has an entry.
func (b *Bench) Depth(ctx context.Context, waiters int) error {
	fleets := []*fleet{{rival: rival.RelockFair()}}
	s := Sample{Workload: "depth", Case: strconv.Itoa(waiters)}
	return b.interleave(ctx, fleets, s, func(ctx context.Context, _ *fleet, s *Sample) error {
		return b.depth(ctx, waiters, s)
	})
}

// handOffsMeasured bounds them; a queue that is shorter turns round.
const handOffsMeasured = 200

func (b *Bench) depth(parent context.Context, waiters int, s *Sample) error {
	ctx, cancel := context.WithCancel(parent)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	c, rdb, err := rival.OpenRelock(b.Server.Addr(), rival.Setup{TTL: ttl})
	if err != nil {
		return err
	}
	defer func() { cancel(); _ = c.Close(); _ = rdb.Close() }()
	l := c.NewLock(b.name("depth"), relock.Fair())
	first, err := l.Acquire(ctx)
	if err != nil {
		return err
	}
	var errs tally
	turns := make(chan *relock.Hold) // one at a time: who holds sends
	wait := func() {
		h, err := l.Acquire(ctx)
		if err != nil {
			if ctx.Err() == nil {
				errs.add(err)
			}
			return
		}
		select {
		case turns <- h:
		case <-ctx.Done():
		}
	}
	joinBegin := time.Now()
	for range waiters {
		wg.Go(wait)
	}
	if err := queued(ctx, l, waiters); err != nil {
		return err
	}
	s.Values["joins/s"] = float64(waiters) / time.Since(joinBegin).Seconds()
	before, err := b.Server.Counts(ctx)
	if err != nil {
		return err
	}
	begin, h := time.Now(), first
	for range handOffsMeasured {
		if err := h.Release(); err != nil {
			errs.add(err)
		}
		wg.Go(wait) // keeps the queue as long as it was
		select {
		case h = <-turns:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	elapsed := time.Since(begin)
	after, err := b.Server.Counts(ctx)
	if err != nil {
		return err
	}
	did := after.Since(before)
	s.Values["hand-offs/s"] = handOffsMeasured / elapsed.Seconds()
	s.Values["server us/hand-off"] = did.ServerUsec(nil) / handOffsMeasured
	s.Values["server us/script"] = did.ServerUsec(nil) / float64(did.Calls["evalsha"])
	s.Values["commands/hand-off"] = float64(did.Commands(nil)) / handOffsMeasured
	errs.into(s)
	return nil
}

// queued waits until so many stand in the queue.
func queued(ctx context.Context, l *relock.Lock, n int) error {
	by := time.Now().Add(30 * time.Second)
	for {
		info, err := l.Info(ctx)
		if err != nil {
			return err
		}
		if info.Waiters >= n {
			return nil
		}
		if time.Now().After(by) {
			return fmt.Errorf("%d waiters after 30 s, not %d", info.Waiters, n)
		}
		if err := pause(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}
