// Package endings_test looks at calls whose context ends, or whose wait is over, before the
// lock comes free: none of them may return with the lock, and none may leave anything in
// the way of a later call. It does so on real servers over links that take time, since in virtual
// time the instant between the two has no width.
//
// A few calls of each kind run with the ordinary tests. For many, and for one kind or link:
//
//	RELOCK_ENDINGS=100000 go test -count=1 -timeout 0 -v -run 'TestEndedCalls/plain/rtt_50ms' ./test/endings
package endings_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// callsEnv is how many calls are ended for each kind, link and number of clients.
const callsEnv = "RELOCK_ENDINGS"

// allowance is how much later than a round trip another client's attempt must find the lock
// free. It is for a machine that has much to do, not for Redis.
const allowance = time.Second

// crowd is how many calls wait for one lock and end together.
const crowd = 4

func over(t *testing.T, srv *redistest.RealServer, rtt time.Duration) func(*redis.Options) {
	if rtt == 0 {
		return func(*redis.Options) {}
	}
	link := redistest.NewLink(t, srv.Dial)
	link.Latency(rtt / 2)
	return func(o *redis.Options) { o.Dialer = link.Dial }
}

// TestEndedCalls ends calls of every kind, over links of several lengths, over three clients and
// on one; with the ordinary tests over three only.
func TestEndedCalls(t *testing.T) {
	n, links := 16, []time.Duration{0, 20 * time.Millisecond}
	if text := os.Getenv(callsEnv); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		rig.Must(t, err)
		links = []time.Duration{0, time.Millisecond, 50 * time.Millisecond}
	}
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			for _, rtt := range links {
				t.Run(fmt.Sprintf("rtt %v", rtt), func(t *testing.T) {
					if len(links) > 2 {
						t.Run("one client", func(t *testing.T) { endAll(t, k, rtt, 1, n) })
					}
					t.Run("three clients", func(t *testing.T) { endAll(t, k, rtt, 3, n) })
				})
			}
		})
	}
}

// A count is what has come of the calls.
type count struct {
	ended   atomic.Int64 // calls that have ended without the lock, as they should
	held    atomic.Int64 // that returned with the lock though they had ended first
	refused atomic.Int64 // later attempts of the same client that did not get the free lock
	late    atomic.Int64 // attempts of another client that did not, a round trip and an allowance later
	window  atomic.Int64 // attempts of another client that did not before that
	longest atomic.Int64 // how much later the latest of these began, in ns
	failed  atomic.Int64 // whatever else
}

func (c *count) String() string {
	return fmt.Sprintf("%d calls ended; %d held; later attempts refused: %d of the same client, %d of another (and %d within a round trip, the last %v after the call); %d failed",
		c.ended.Load(), c.held.Load(), c.refused.Load(), c.late.Load(), c.window.Load(),
		time.Duration(c.longest.Load()).Round(10*time.Microsecond), c.failed.Load())
}

// endAll ends n calls of a kind, on many locks at once.
func endAll(t *testing.T, k kind, rtt time.Duration, clients, n int) {
	servers := make([]*redistest.RealServer, 1)
	if k.name == "quorum" {
		servers = make([]*redistest.RealServer, primaries)
	}
	for i := range servers {
		servers[i] = redistest.Real(t)
	}
	parties := make([]*party, clients)
	for i := range parties {
		parties[i] = newParty(t, servers, rtt)
	}
	w := &world{t: t, kind: k, rtt: rtt, parties: parties}
	warm(t, w)
	lanes := 4
	if rtt >= 10*time.Millisecond {
		lanes = 50
	}
	lanes = min(lanes, max(n/(4*crowd), 1))
	cycles := (n + lanes*crowd - 1) / (lanes * crowd)
	began := time.Now()
	var wg sync.WaitGroup
	for lane := range lanes {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(lane), 1))
			for cycle := range cycles {
				w.cycle(r, fmt.Sprintf("%d", lane), cycle)
			}
		})
	}
	wg.Wait()
	t.Logf("%s, rtt %v, %d clients, in %v: %v", k.name, rtt, clients, time.Since(began).Round(time.Millisecond), &w.count)
	if w.held.Load()+w.refused.Load()+w.late.Load()+w.failed.Load() > 0 {
		t.Error("calls that had ended held, or were in the way of others")
	}
	w.nothingLeft(lanes)
}

// A world is what the calls of one kind have in common.
type world struct {
	count
	t       *testing.T
	kind    kind
	rtt     time.Duration
	parties []*party
}

func warm(t *testing.T, w *world) {
	t.Helper()
	for _, p := range w.parties {
		_, waits := w.kind.locks(p, "warm")
		rig.Must(t, waits.Do(t.Context(), func(context.Context) error { return nil }))
	}
}

// cycle has calls wait for a lock that is held, ends them all, and then releases it. After
// that the lock is free, and an attempt must find it so.
func (w *world) cycle(r *rand.Rand, name string, nth int) {
	holder, waiter, other := w.parties[0], w.parties[nth%len(w.parties)], w.parties[(nth+1)%len(w.parties)]
	holds, _ := w.kind.locks(holder, name)
	ctx := w.t.Context()
	if err := holds.Lock(ctx); err != nil {
		w.fail("holder: Lock: %v", err)
		return
	}
	how := calls[r.IntN(len(calls))]
	ended, end := context.WithCancel(ctx)
	wait := ages
	byWait := how.name[0] == 'T' && r.IntN(2) == 0
	if byWait { // its own wait ends it
		wait = w.instant(r) + time.Millisecond
	}
	type result struct {
		had bool
		err error
	}
	results := make(chan result, crowd)
	_, waits := w.kind.locks(waiter, name)
	for range crowd {
		go func() {
			had, err := how.by(ended, waits, wait)
			results <- result{had, err}
		}()
	}
	if !byWait {
		at := time.NewTimer(w.instant(r))
		<-at.C
		end()
		defer end()
	}
	defer end()
	take := func() {
		for range crowd {
			switch res := <-results; {
			case res.had:
				w.held.Add(1)
			case res.err != nil && !byWait && !errors.Is(res.err, context.Canceled):
				w.fail("%s ended with %v", how.name, res.err)
			default:
				w.ended.Add(1)
			}
		}
	}
	if byWait {
		take()
	}
	if err := holds.Unlock(); err != nil {
		w.fail("holder: Unlock: %v", err)
	}
	if !byWait {
		take()
	}
	w.probe(r, name, waiter, other)
}

// instant is when a call is ended: before its request leaves, under way, or as it waits.
func (w *world) instant(r *rand.Rand) time.Duration {
	return time.Duration(r.Int64N(int64(3*w.rtt + 2*time.Millisecond)))
}

// probe attempts to get a free lock, by the client whose calls have ended or by another.
func (w *world) probe(r *rand.Rand, name string, same, other *party) {
	by, began := same, time.Now()
	if len(w.parties) > 1 && r.IntN(2) == 0 {
		by = other
	}
	for {
		_, l := w.kind.locks(by, name)
		asked := time.Since(began)
		had, err := l.TryLock(w.t.Context(), 0)
		switch {
		case err != nil:
			w.fail("a later attempt: %v", err)
			return
		case had:
			if err := l.Unlock(); err != nil {
				w.fail("the Unlock of a later attempt: %v", err)
			}
			return
		case by == same:
			w.refused.Add(1)
			return
		case asked > w.rtt+allowance:
			w.late.Add(1)
			return
		}
		w.window.Add(1)
		w.longest.Store(max(w.longest.Load(), int64(asked)))
	}
}

func (w *world) fail(format string, args ...any) {
	if w.failed.Add(1) <= 5 {
		w.t.Logf(format, args...)
	}
}

// nothingLeft looks for what calls have left in Redis and in the clients.
func (w *world) nothingLeft(lanes int) {
	t := w.t
	t.Helper()
	for i := range lanes {
		name := strconv.Itoa(i)
		for _, c := range w.parties[0].clients {
			rig.Soon(t, func() string {
				info, err := c.NewLock(name).Info(t.Context())
				if err != nil || len(info.Holders)+info.Waiters > 0 {
					return fmt.Sprintf("%q has %+v, %v", name, info, err)
				}
				return ""
			})
		}
	}
	for _, p := range w.parties {
		rig.Soon(t, func() string {
			for _, c := range p.clients {
				if left := rig.Remains(c); left != "" {
					return "a client has " + left
				}
			}
			return ""
		})
	}
}
