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
	c, rdb, err := rival.OpenRelock(b.Server.Addr(), rival.Setup{TTL: ttl})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(parent)
	q := fairQueue{lock: c.NewLock(b.name("depth"), relock.Fair()), turns: make(chan *relock.Hold)}
	defer q.calls.Wait()
	defer func() { cancel(); _ = c.Close(); _ = rdb.Close() }()
	first, err := q.lock.Acquire(ctx)
	if err != nil {
		return err
	}
	begin := time.Now()
	q.join(ctx, waiters)
	if err := queued(ctx, q.lock, waiters); err != nil {
		return err
	}
	s.Values["joins/s"] = float64(waiters) / time.Since(begin).Seconds()
	before, err := b.Server.Counts(ctx)
	if err != nil {
		return err
	}
	elapsed, err := q.handOffs(ctx, first)
	if err != nil {
		return err
	}
	after, err := b.Server.Counts(ctx)
	if err != nil {
		return err
	}
	did := after.Since(before)
	s.Values["hand-offs/s"] = handOffsMeasured / elapsed.Seconds()
	s.Values["server us/hand-off"] = did.ServerUsec(nil) / handOffsMeasured
	s.Values["server us/script"] = did.ServerUsec(nil) / float64(did.Calls["evalsha"])
	s.Values["commands/hand-off"] = float64(did.Commands(nil)) / handOffsMeasured
	q.errs.into(s)
	return nil
}

// fairQueue is a fair lock and the calls that wait for it.
type fairQueue struct {
	lock  *relock.Lock
	turns chan *relock.Hold // one at a time: who holds sends
	calls sync.WaitGroup
	errs  tally
}

// join has n more calls wait for the lock.
func (q *fairQueue) join(ctx context.Context, n int) {
	for range n {
		q.calls.Go(func() { q.wait(ctx) })
	}
}

func (q *fairQueue) wait(ctx context.Context) {
	h, err := q.lock.Acquire(ctx)
	if err != nil {
		if ctx.Err() == nil {
			q.errs.add(err)
		}
		return
	}
	select {
	case q.turns <- h:
	case <-ctx.Done():
	}
}

// handOffs releases and waits for the next, as often as is measured.
func (q *fairQueue) handOffs(ctx context.Context, h *relock.Hold) (time.Duration, error) {
	begin := time.Now()
	for range handOffsMeasured {
		if err := h.Release(); err != nil {
			q.errs.add(err)
		}
		q.join(ctx, 1) // keeps the queue as long as it was
		select {
		case h = <-q.turns:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return time.Since(begin), nil
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
