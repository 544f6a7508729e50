package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/relock-go/relock/bench/internal/host"
	"github.com/relock-go/relock/bench/internal/rival"
)

// HandOff measures, from the call of Unlock by one client to the return of Lock to
// another, both behind links of their own with that round trip.
func (b *Bench) HandOff(ctx context.Context, roundTrip time.Duration) error {
	var links []*host.Link
	defer func() {
		for _, l := range links {
			l.Close()
		}
	}()
	var fleets []*fleet
	defer func() { closeAll(fleets) }()
	for _, r := range b.Rivals {
		f := &fleet{rival: r}
		fleets = append(fleets, f)
		for range 2 {
			link, err := host.NewLink(b.Server.Addr(), roundTrip)
			if err != nil {
				return err
			}
			links = append(links, link)
			c, err := r.Open(link.Addr(), rival.Setup{TTL: ttl})
			if err != nil {
				return fmt.Errorf("opening %s: %w", r.Name, err)
			}
			f.clients = append(f.clients, c)
		}
	}
	s := Sample{Workload: "link", Case: roundTrip.String()}
	return b.interleave(ctx, fleets, s, func(ctx context.Context, f *fleet, s *Sample) error {
		if f.rival.Floor {
			return b.roundTrips(ctx, f, s)
		}
		return b.handOffs(ctx, f, roundTrip, s)
	})
}

// roundTrips measures what the link really takes: one PING.
func (b *Bench) roundTrips(ctx context.Context, f *fleet, s *Sample) error {
	var took []time.Duration
	var errs tally
	lock := f.clients[0].Lock("")
	if err := lock.Lock(ctx); err != nil { // connects
		errs.add(err)
	}
	for by := time.Now().Add(b.Window); time.Now().Before(by) || len(took) < 10 && errs.n.Load() < 10; {
		begin := time.Now()
		if err := lock.Lock(ctx); err != nil {
			errs.add(err)
			continue
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	errs.into(s)
	s.percentile("round trip p50 us", took, 50, micros)
	return nil
}

// handOffs has the two clients take turns. Who gets the lock has been waiting for
// some round trips, so that it is not its own way to the queue that is measured.
func (b *Bench) handOffs(ctx context.Context, f *fleet, roundTrip time.Duration, s *Sample) error {
	name := b.name("link")
	sides := [2]rival.Lock{f.clients[0].Lock(name), f.clients[1].Lock(name)}
	settle := 4*roundTrip + 5*time.Millisecond
	var errs tally
	var took []time.Duration
	if err := within(ctx, sides[0].Lock); err != nil {
		errs.add(err)
		errs.into(s)
		s.Few = true
		return nil
	}
	holder, warm := 0, 3
	for by := time.Now().Add(2 * b.Window); time.Now().Before(by) || len(took) == 0; {
		d, handed, err := handOff(ctx, sides[holder], sides[1-holder], settle, &errs)
		if err != nil {
			return err
		}
		if !handed {
			break
		}
		holder = 1 - holder
		if warm--; warm < 0 {
			took = append(took, d)
		}
	}
	if errs.n.Load() == 0 {
		if err := sides[holder].Unlock(); err != nil {
			errs.add(err)
		}
	}
	slices.Sort(took)
	errs.into(s)
	s.Few = len(took) < 5
	s.percentile("hand-off p50 us", took, 50, micros)
	s.percentile("hand-off p99 us", took, 99, micros)
	return nil
}

// handOff returns how long after from's unlock the lock was to's, who had been waiting
// for settle by then. What went wrong with the lock is in errs; an error ends the run.
func handOff(ctx context.Context, from, to rival.Lock, settle time.Duration, errs *tally) (took time.Duration, handed bool, err error) {
	got := make(chan error, 1)
	var at time.Time
	go func() {
		err := within(ctx, to.Lock)
		at = time.Now()
		got <- err
	}()
	if err := pause(ctx, settle); err != nil {
		return 0, false, errors.Join(err, <-got)
	}
	begin := time.Now()
	if err := from.Unlock(); err != nil {
		errs.add(err)
	}
	if err := <-got; err != nil {
		errs.add(err)
		return 0, false, nil
	}
	return at.Sub(begin), true, nil
}

// within bounds a wait that ought to be short.
func within(ctx context.Context, lock func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return lock(ctx)
}
