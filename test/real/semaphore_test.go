package real_test

import (
	"cmp"
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

const drawTTL = 500 * time.Millisecond

// A use is what a process says of one of its holds of a semaphore, by the clock of the
// machine: that it was trusted from First to Last, and when it began until Trusted at
// least. Last is 0 while it goes on.
type use struct {
	Token                int64
	Weight               int
	First, Last, Trusted int64
	Dies                 int64 // an instant right before the process' death
}

// enoughKey is there when processes are to stop drawing.
const enoughKey = "enough"

// draw has eight goroutines take permits, a random number each time, until there has been
// enough of it. One time in twenty the process dies with all that it holds.
func (a *agent) draw(o order) response {
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for a.rdb.Exists(context.Background(), enoughKey).Val() == 0 {
				if err := a.drawOnce(o); err != nil {
					a.report(o, failure(err))
					return
				}
			}
		})
	}
	all.Wait()
	return response{}
}

func (a *agent) drawOnce(o order) error {
	weight := 1 + rand.IntN(int(o.N))
	s := a.client.NewSemaphore(o.Lock, int(o.N), relock.Weight(weight), relock.TTL(o.TTL))
	h, err := s.Acquire(context.Background())
	if err != nil {
		return err
	}
	u := use{Token: h.Token(), Weight: weight, First: time.Now().UnixNano(), Trusted: h.TrustedUntil().UnixNano()}
	a.report(o, response{Begun: true, Use: &u})
	if rand.IntN(20) == 0 {
		u.Dies = time.Now().UnixNano()
		a.report(o, response{Begun: true, Use: &u})
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	<-time.After(time.Duration(rand.IntN(4)) * time.Millisecond)
	if now := time.Now().UnixNano(); h.Err() == nil {
		u.Last = now
	} else {
		u.Last = min(now, u.Trusted)
	}
	a.report(o, response{Begun: true, Use: &u})
	_ = h.Release() // a lost one is an end too
	return nil
}

// A draught is some processes that draw from one semaphore.
type draught struct {
	t   *testing.T
	srv *redistest.RealServer
	rdb *redis.Client

	mu     sync.Mutex // guards the following fields
	uses   map[int64]use
	deaths int
	failed []string
	enough int // uses
	seen   int // reports
	over   bool
}

// run has one process draw, and another after its death, until there are enough uses.
func (d *draught) run(first *child) {
	for c := first; c != nil; c = d.next() {
		reports := c.begin(order{Do: "draw", Lock: "s", N: 5, TTL: drawTTL})
		died, mine := int64(0), map[int64]use{}
		for alive := true; alive; {
			select {
			case r := <-reports:
				alive = d.note(r, mine, &died)
				continue
			case <-c.exited:
			}
			for alive = false; len(reports) > 0; {
				d.note(<-reports, mine, &died)
			}
		}
		d.keep(mine, died)
	}
}

// note takes a report; false: it was the last.
func (d *draught) note(r response, mine map[int64]use, died *int64) bool {
	if r.Use == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		if r.Err != "" {
			d.failed = append(d.failed, r.Err)
		}
		return false
	}
	mine[r.Use.Token] = *r.Use
	if r.Use.Dies != 0 && (*died == 0 || r.Use.Dies < *died) {
		*died = r.Use.Dies
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seen++; d.seen > 2*d.enough && !d.over {
		d.over = true
		rig.Must(d.t, d.rdb.Set(d.t.Context(), enoughKey, 1, 0).Err())
	}
	return true
}

// keep notes what a process has said. What it has left open ended with it.
func (d *draught) keep(mine map[int64]use, died int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if died != 0 {
		d.deaths++
	}
	for token, u := range mine {
		if u.Last == 0 {
			u.Last = max(u.First, min(died, u.Trusted))
		}
		if _, twice := d.uses[token]; twice {
			d.failed = append(d.failed, "two grants have one token")
		}
		d.uses[token] = u
	}
}

// next is a process instead of one that has died, or nil.
func (d *draught) next() *child {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over || len(d.failed) > 0 {
		return nil
	}
	return spawn(d.t, d.srv.Addr())
}

// most is how many permits were in use at one time.
func (d *draught) most() (most int) {
	type change struct {
		at int64
		by int
	}
	var all []change
	for _, u := range d.uses {
		all = append(all, change{u.First, u.Weight}, change{u.Last, -u.Weight})
	}
	slices.SortFunc(all, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	used := 0
	for _, c := range all {
		used += c.by
		most = max(most, used)
	}
	return most
}

// Fails when a request is let in beside more than its permits, and when a dead holder's
// are never given back, or twice.
func TestSemaphoreIsNeverOverdrawnThoughProcessesDie(t *testing.T) {
	srv := redistest.Real(t)
	d := &draught{t: t, srv: srv, rdb: srv.Client(t), uses: map[int64]use{}, enough: rig.Rounds(300, 10_000)}
	var all sync.WaitGroup
	for range 8 {
		c := spawn(t, d.srv.Addr())
		all.Go(func() { d.run(c) })
	}
	all.Wait()
	t.Logf("%d holds, %d processes have died, up to %d permits in use at a time", len(d.uses), d.deaths, d.most())
	for _, problem := range d.failed {
		t.Error(problem)
	}
	if d.most() > 5 {
		t.Errorf("%d permits of 5 are in use at one time", d.most())
	}
	if d.deaths < d.enough/100 || d.most() < 4 {
		t.Errorf("%d deaths and up to %d permits in use show nothing", d.deaths, d.most())
	}
	look := rig.Open(t, srv.Client(t))
	rig.End(t, rig.MustAcquire(t, look.NewSemaphore("s", 5, relock.Weight(5))))
	one := look.NewSemaphore("s", 5)
	for range 5 {
		got, err := one.TryLock(t.Context(), 0)
		if rig.Must(t, err); !got {
			t.Fatal("fewer than 5 are to be had in the end")
		}
	}
	if got, err := one.TryLock(t.Context(), 0); got || err != nil {
		t.Errorf("TryLock = %v, %v of a sixth permit, want false, nil", got, err)
	}
	for range 5 {
		rig.Must(t, one.Unlock())
	}
	rig.WantBare(t, srv.Client(t), "s")
}
