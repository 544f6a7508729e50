package load

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/relock-go/relock/bench/internal/rival"
	"github.com/relock-go/relock/bench/internal/stat"
)

// Hot is one lock that everybody wants.
type Hot struct {
	Clients, Each int           // goroutines for each client
	Section       time.Duration // slept while holding; 0 is tight
}

// Case names the setup in the report.
func (h Hot) Case() string {
	kind := "tight"
	if h.Section > 0 {
		kind = h.Section.String()
	}
	return fmt.Sprintf("%d x %d, %s", h.Clients, h.Each, kind)
}

// HotLock measures one lock under contention.
func (b *Bench) HotLock(ctx context.Context, h Hot) error {
	fleets, err := b.open(b.locks(), h.Clients, b.Server.Addr())
	if err != nil {
		return err
	}
	defer closeAll(fleets)
	s := Sample{Workload: "hot", Case: h.Case()}
	return b.interleave(ctx, fleets, s, func(ctx context.Context, f *fleet, s *Sample) error { return b.hot(ctx, f, h, s) })
}

// hot is one round of one rival.
func (b *Bench) hot(ctx context.Context, f *fleet, h Hot, s *Sample) error {
	// Connections and subscriptions are made on the first use.
	warm := h.start(ctx, f, b.name("warm"), &arena{})
	if err := warm.finish(b.Window / 4); err != nil {
		return err
	}
	before, err := b.Server.Counts(ctx)
	if err != nil {
		return err
	}
	a, cpu := &arena{}, cpuTime()
	r := h.start(ctx, f, b.name("hot"), a)
	if err := r.finish(2 * b.Window); err != nil {
		return err
	}
	cpu = cpuTime() - cpu
	after, err := b.Server.Counts(ctx)
	if err != nil {
		return err
	}
	r.report(s)
	did, grants := after.Since(before), float64(r.grants())
	s.Values["commands/grant"] = float64(did.Commands(f.rival.Sends)) / grants
	s.Values["bytes/grant"] = float64(did.In+did.Out) / grants
	s.Values["server us/grant"] = did.ServerUsec(f.rival.Sends) / grants
	s.Values["server CPU us/grant"], s.Values["client CPU us/grant"] = did.CPU/grants, micros(cpu)/grants
	return nil
}

// arena is what the holders of one lock share.
type arena struct {
	inside   atomic.Int64
	overlaps atomic.Int64
	left     atomic.Int64 // when the last holder called Unlock, in ns after the start
}

// contest is one window of goroutines at one lock.
type contest struct {
	hot     Hot
	arena   *arena
	ctx     context.Context
	cancel  context.CancelFunc
	begin   time.Time
	end     time.Time
	players []*player
	wg      sync.WaitGroup
	errs    tally
}

type player struct {
	lock    rival.Lock
	grants  int64
	longest time.Duration
	gaps    []time.Duration
	waits   []time.Duration
	since   time.Time // of the wait that the window's end cut short
	waiting bool
}

func (h Hot) start(ctx context.Context, f *fleet, name string, a *arena) *contest {
	c := &contest{hot: h, arena: a}
	c.ctx, c.cancel = context.WithCancel(ctx)
	for _, client := range f.clients {
		for range h.Each {
			c.players = append(c.players, &player{lock: client.Lock(name)})
		}
	}
	c.begin = time.Now()
	for _, p := range c.players {
		c.wg.Go(func() { c.play(p) })
	}
	return c
}

// finish ends the contest after d.
func (c *contest) finish(d time.Duration) error {
	err := pause(c.ctx, d)
	c.end = time.Now()
	c.cancel()
	c.wg.Wait()
	return err
}

func (c *contest) play(p *player) {
	for c.ctx.Err() == nil {
		p.since, p.waiting = time.Now(), true
		err := p.lock.Lock(c.ctx)
		now := time.Now()
		if err != nil {
			if c.ctx.Err() == nil {
				c.errs.add(err)
				_ = pause(c.ctx, time.Millisecond)
			}
			continue
		}
		p.waiting = false
		c.hold(p, now)
		if err := p.lock.Unlock(); err != nil {
			c.errs.add(err)
		}
	}
}

// hold is the critical section. A gap is measured from the call of Unlock by one
// holder to the return of Lock to the next.
func (c *contest) hold(p *player, now time.Time) {
	if c.arena.inside.Add(1) != 1 {
		c.arena.overlaps.Add(1)
	}
	wait := now.Sub(p.since)
	p.grants++
	p.longest = max(p.longest, wait)
	if left := c.arena.left.Load(); left > 0 && len(p.gaps) < samplesKept/len(c.players) {
		p.gaps = append(p.gaps, now.Sub(c.begin)-time.Duration(left))
	}
	if len(p.waits) < samplesKept/len(c.players) {
		p.waits = append(p.waits, wait)
	}
	if c.hot.Section > 0 {
		time.Sleep(c.hot.Section)
	}
	c.arena.inside.Add(-1)
	c.arena.left.Store(int64(time.Since(c.begin)))
}

func (c *contest) grants() (n int64) {
	for _, p := range c.players {
		n += p.grants
	}
	return n
}

func (c *contest) report(s *Sample) {
	var shares []int64
	var gaps, waits []time.Duration
	var longest time.Duration
	for _, p := range c.players {
		shares = append(shares, p.grants)
		gaps, waits = append(gaps, p.gaps...), append(waits, p.waits...)
		longest = max(longest, p.longest)
		if p.waiting { // who never got it waited longest
			longest = max(longest, c.end.Sub(p.since))
		}
	}
	slices.Sort(gaps)
	slices.Sort(waits)
	c.errs.into(s)
	if n := c.arena.overlaps.Load(); n > 0 {
		s.Errors += n
		s.Err = fmt.Sprintf("%d grants while another held; %s", n, s.Err)
	}
	s.Few = c.grants() < int64(2*len(c.players))
	s.Values["grants/s"] = float64(c.grants()) / c.end.Sub(c.begin).Seconds()
	s.percentile("gap p50 us", gaps, 50, micros)
	s.percentile("gap p99 us", gaps, 99, micros)
	s.percentile("wait p50 ms", waits, 50, millis)
	s.Values["longest wait ms"] = millis(longest)
	s.Values["Jain"] = stat.Jain(shares)
}
