package load

import (
	"context"
	"slices"
	"time"

	"github.com/relock-go/relock/bench/internal/rival"
)

// Signals measures how soon who waits on a condition runs when it is signalled, beside how
// soon who waits for a fair lock does: two clients, without a link between.
func (b *Bench) Signals(ctx context.Context) error {
	fleets, err := b.open([]rival.Rival{rival.RelockFair(), rival.RelockCond()}, 2, b.Server.Addr())
	if err != nil {
		return err
	}
	defer closeAll(fleets)
	s := Sample{Workload: "signal", Case: "1"}
	return b.interleave(ctx, fleets, s, func(ctx context.Context, f *fleet, s *Sample) error {
		if f.rival.Name == rival.RelockFair().Name {
			return b.handOffs(ctx, f, 0, s)
		}
		return b.signals(ctx, f, s)
	})
}

// signals has one client signal, and the other wait again and again.
func (b *Bench) signals(ctx context.Context, f *fleet, s *Sample) error {
	name := b.name("signal")
	from, to := f.clients[0].Lock(name).(rival.CondLock), f.clients[1].Lock(name).(rival.CondLock)
	var errs tally
	var whole, unlock []time.Duration
	for by, warm := time.Now().Add(2*b.Window), 3; time.Now().Before(by) || len(whole) == 0; warm-- {
		both, one, err := signalled(ctx, from, to)
		if err != nil {
			errs.add(err)
			break
		}
		if warm <= 0 {
			whole, unlock = append(whole, both), append(unlock, one)
		}
	}
	slices.Sort(whole)
	slices.Sort(unlock)
	errs.into(s)
	s.Few = len(whole) < 5
	s.percentile("signal, unlock p50 us", whole, 50, micros)
	s.percentile("hand-off p50 us", unlock, 50, micros)
	s.percentile("hand-off p99 us", unlock, 99, micros)
	return nil
}

// signalled returns how long after the signal, and how long after the unlock behind it, who
// had been waiting for some ms holds.
func signalled(ctx context.Context, from, to rival.CondLock) (whole, unlock time.Duration, err error) {
	got, holds := make(chan error, 1), make(chan struct{})
	var at time.Time
	go func() {
		got <- func() error {
			err := within(ctx, to.Lock)
			close(holds) // from gets the lock only once Wait has given it up: a signal before that would meet nobody
			if err != nil {
				return err
			}
			err = within(ctx, to.Wait)
			at = time.Now()
			if err != nil {
				return err
			}
			return to.Unlock()
		}()
	}()
	<-holds
	_ = pause(ctx, 5*time.Millisecond)
	if err := within(ctx, from.Lock); err != nil {
		return 0, 0, err
	}
	begin := time.Now()
	err = within(ctx, from.Signal)
	then := time.Now()
	if err == nil {
		err = from.Unlock()
	}
	if ended := <-got; err == nil {
		err = ended
	}
	return at.Sub(begin), at.Sub(then), err
}
