//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/relock-go/relock"
)

// info reads from Redis who holds the lock, and prints the answer.
func (s *stage) info() relock.Holder {
	if s.err != nil {
		return relock.Holder{}
	}
	info, err := s.lock.Info(s.ctx)
	if err == nil && len(info.Holders) == 0 {
		err = errors.New("nobody holds the lock")
	}
	if err != nil {
		s.fail(err)
		return relock.Holder{}
	}
	h := info.Holders[0]
	s.line(time.Now(), "Info", fmt.Sprintf("holds %d, waiting %d, lease %v", h.Holds, info.Waiters, h.TTL.Round(time.Millisecond)))
	return h
}

// readers reads from Redis how many read, and prints the answer.
func (s *stage) readers() (n int) {
	if s.err != nil {
		return 0
	}
	info, err := s.lock.Info(s.ctx)
	if err != nil {
		s.fail(err)
		return 0
	}
	for _, h := range info.Holders {
		if h.Read {
			n++
		}
	}
	s.line(time.Now(), "Info", fmt.Sprintf("%d reading, waiting %d", n, info.Waiters))
	return n
}

// queue sends an order for which the worker must wait, and returns when the worker is n-th in the queue. It
// polls: the worker reports the wait before it has joined the queue, because its inbox must be subscribed
// first.
func (s *stage) queue(w *worker, order string, n int) {
	s.do(w, order, waits)
	for s.err == nil {
		info, err := s.lock.Info(s.ctx)
		if err != nil {
			s.fail(err)
		}
		if info.Waiters == n {
			return
		}
		s.rest(probeEvery)
	}
}

// watchHolders polls the holders until stop is called. stop returns how often it did, and how often a writer
// was not alone.
func (s *stage) watchHolders() (stop func() (looks, mixed int)) {
	ctx, cancel := context.WithCancel(s.ctx)
	var looks, mixed int // the goroutine's until ended is closed
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		again := time.NewTicker(probeEvery)
		defer again.Stop()
		for ctx.Err() == nil {
			if info, err := s.lock.Info(ctx); err == nil {
				looks++
				if writerInCompany(info.Holders) {
					mixed++
				}
			}
			select {
			case <-again.C:
			case <-ctx.Done():
			}
		}
	}()
	return func() (int, int) {
		cancel()
		<-ended
		return looks, mixed
	}
}

// writerInCompany reports whether a writer is not alone.
func writerInCompany(holders []relock.Holder) bool {
	return len(holders) > 1 && slices.ContainsFunc(holders, func(h relock.Holder) bool { return !h.Read })
}

// A loaded machine delays everything. Redis is asked every probeEvery. An answer that comes more than
// stallFrom later counts as a delay of the machine and not of the lock.
const (
	probeEvery = 5 * time.Millisecond
	stallFrom  = 25 * time.Millisecond
)

// watchStalls polls Redis until stop is called. stop returns the sum of the delays.
func (s *stage) watchStalls() (stop func() (stalled time.Duration)) {
	ctx, cancel := context.WithCancel(s.ctx)
	sum := make(chan time.Duration, 1)
	go func() {
		var stalled time.Duration
		probe := time.NewTicker(probeEvery)
		defer probe.Stop()
		for last := time.Now(); ctx.Err() == nil; last = time.Now() {
			s.link.rdb.Ping(ctx)
			select {
			case <-probe.C:
			case <-ctx.Done():
			}
			if took := time.Since(last); took > stallFrom {
				stalled += took
			}
		}
		sum <- stalled
	}()
	return func() time.Duration {
		cancel()
		return <-sum
	}
}
