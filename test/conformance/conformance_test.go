package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// The tests named TestTCK_... are the cases of the JSR-166 TCK for ReentrantLock
// (L) and ReentrantReadWriteLock (W), numbered as in docs/conformance.md, which
// also says what becomes of the cases that are missing here. TestJTREG_... are
// OpenJDK's other tests of these classes, TestTCKGap_... what both leave out.
//
// A thread of theirs is an owner here, an interrupt is the end of a context,
// IllegalMonitorStateException is ErrNotHeld. Every case runs in virtual time
// and against a redis-server, and nothing in it depends on which of them it is.

// A ground is the server that a case runs on, and two processes that use it.
type ground struct {
	t       *testing.T
	virtual *redistest.Server // nil on a real one
	dial    redistest.Dialer
	connect func(t testing.TB, mod ...func(*redis.Options)) *redis.Client
	rdb     *redis.Client
	name    string              // the lock's
	opts    []relock.LockOption // of every handle
	with    []relock.Option     // of every client
	clients [2]*relock.Client
	dealt   int
}

// onBothServers runs a case in virtual time, and against a redis-server.
func onBothServers(t *testing.T, play func(t *testing.T, g *ground)) {
	t.Helper()
	onGrounds(t, map[string][]relock.LockOption{"default": nil}, play)
}

// inBothModes does so for a lock without options, and for a fair one.
func inBothModes(t *testing.T, play func(t *testing.T, g *ground)) {
	t.Helper()
	onGrounds(t, map[string][]relock.LockOption{"plain": nil, "fair": {relock.Fair()}}, play)
}

// onGrounds runs a case for each set of options: in virtual time, on a redis-server, and on
// one whose scripts may publish only in the slot of their keys, as some hosters' do. The cases
// of one test share a server, and have a lock each.
func onGrounds(t *testing.T, modes map[string][]relock.LockOption, play func(t *testing.T, g *ground)) {
	t.Helper()
	for mode, opts := range modes {
		t.Run("virtual/"+mode, func(t *testing.T) { inVirtualTime(t, play, opts...) })
	}
	t.Run("real", func(t *testing.T) {
		srv := redistest.Real(t)
		for mode, opts := range modes {
			t.Run(mode, func(t *testing.T) {
				play(t, newGround(t, &ground{dial: srv.Dial, connect: srv.Client, opts: opts}))
			})
		}
	})
	t.Run("hosted", func(t *testing.T) {
		srv := redistest.Host(t, redistest.Hosting{SlotPublish: true, Refuses: []string{"publish", "subscribe", "pubsub|numsub"}})
		for mode, opts := range modes {
			t.Run(mode, func(t *testing.T) {
				play(t, newGround(t, &ground{dial: srv.Dial, connect: srv.Client, opts: opts, with: []relock.Option{relock.ShardedPubSub()}}))
			})
		}
	})
}

// inVirtualTime runs a case in virtual time alone. Whatever it leaves in Redis
// must have an end.
func inVirtualTime(t *testing.T, play func(t *testing.T, g *ground), opts ...relock.LockOption) {
	t.Helper()
	redistest.Virtual(t)
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { virtual.Sleep(10 * time.Second) }) // go-redis' dials outlive its Close
		srv := redistest.Start(t)
		play(t, newGround(t, &ground{virtual: srv, dial: srv.Dial, connect: srv.Client, opts: opts}))
		synctest.Wait()
		for _, key := range srv.Direct().Keys() {
			if srv.Direct().TTL(key) <= 0 {
				t.Errorf("%q stays in Redis for ever", key)
			}
		}
	})
}

func newGround(t *testing.T, g *ground) *ground {
	g.t, g.name, g.rdb = t, t.Name(), g.connect(t)
	for i := range g.clients {
		g.clients[i] = g.client(g.rdb)
	}
	return g
}

func (g *ground) client(rdb *redis.Client) *relock.Client {
	g.t.Helper()
	c, err := relock.New(rdb, g.with...)
	g.ok(err)
	if g.virtual != nil {
		rig.SetClock(c, clock.New(time.Now, nil))
	}
	g.t.Cleanup(func() { _ = c.Close() })
	return c
}

// over returns a client whose commands cross a link of its own.
func (g *ground) over() (*relock.Client, *redistest.Link) {
	g.t.Helper()
	link := redistest.NewLink(g.t, g.dial)
	return g.client(g.connect(g.t, func(o *redis.Options) { o.Dialer = link.Dial })), link
}

// ok ends the case on an error.
func (g *ground) ok(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

// is asserts which error it was.
func (g *ground) is(err, want error) {
	g.t.Helper()
	if !errors.Is(err, want) {
		g.t.Errorf("error %v, want %v", err, want)
	}
}

// tries asserts what a TryLock returned.
func (g *ground) tries(want bool) func(got bool, err error) {
	return func(got bool, err error) {
		g.t.Helper()
		if g.virtual == nil && !want && !got && rig.Unheard(err) {
			return
		}
		if got != want || err != nil {
			g.t.Errorf("TryLock = %v, %v, want %v, nil", got, err, want)
		}
	}
}

// until waits for what another goroutine or the server brings about.
func (g *ground) until(so func() (bool, string)) {
	g.t.Helper()
	again, limit := time.NewTicker(2*time.Millisecond), time.NewTimer(30*time.Second)
	defer again.Stop()
	defer limit.Stop()
	for {
		done, what := so()
		if done {
			return
		}
		select {
		case <-again.C:
		case <-limit.C:
			g.t.Fatalf("waited in vain: %s", what)
		}
	}
}

// view is a handle for questions to the server.
func (g *ground) view() *relock.Lock { return g.clients[0].NewLock(g.name) }

// queue waits until just these owners stand in the server's queue, in this order.
func (g *ground) queue(want ...string) {
	g.t.Helper()
	g.until(func() (bool, string) {
		waiters, err := g.view().Waiters(g.t.Context())
		g.ok(err)
		var got []string
		for _, w := range waiters {
			got = append(got, w.Owner)
		}
		return slices.Equal(got, want), fmt.Sprintf("the queue is %q, want %q", got, want)
	})
	if g.virtual != nil {
		synctest.Wait() // the waiters have read their answers, too
	}
}

// held asserts who holds according to the server: "owner w2" or "owner r1" for
// each, whose count is that of all its holds.
func (g *ground) held(want ...string) {
	g.t.Helper()
	info, err := g.view().Info(g.t.Context())
	g.ok(err)
	var got []string
	for _, h := range info.Holders {
		mode := "w"
		if h.Read {
			mode = "r"
		}
		got = append(got, fmt.Sprintf("%s %s%d", h.Owner, mode, h.Holds))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		g.t.Errorf("held by %q, want %q", got, want)
	}
}

// A thread is one of the TCK's: an owner, with handles of its own. They alternate
// between two processes.
type thread struct {
	g     *ground
	owner string
	ctx   context.Context
	*relock.RWLock
	excl *relock.Lock
}

func (g *ground) thread(owner string) *thread {
	c := g.clients[g.dealt%len(g.clients)]
	g.dealt++
	return g.threadOf(c, owner)
}

func (g *ground) threadOf(c *relock.Client, owner string) *thread {
	return &thread{
		g: g, owner: owner, ctx: relock.WithOwner(g.t.Context(), owner),
		RWLock: c.NewRWLock(g.name, g.opts...), excl: c.NewLock(g.name, g.opts...),
	}
}

// An attempt is a call that may have to wait.
type attempt struct {
	g         *ground
	interrupt context.CancelFunc
	over      atomic.Bool
	result    chan error
}

// begin makes a call of the thread beside the case, under a context of its own.
func (th *thread) begin(call func(ctx context.Context) error) *attempt {
	ctx, cancel := context.WithCancel(th.ctx)
	th.g.t.Cleanup(cancel)
	a := &attempt{g: th.g, interrupt: cancel, result: make(chan error, 1)}
	go func() {
		err := call(ctx)
		a.over.Store(true)
		a.result <- err
	}()
	return a
}

// ends waits for the call's result.
func (a *attempt) ends() (err error) {
	a.g.t.Helper()
	a.g.until(func() (bool, string) { return a.over.Load(), "the call has not returned" })
	return <-a.result
}

// waits asserts that the call has not returned.
func (a *attempt) waits() {
	a.g.t.Helper()
	if a.g.virtual != nil {
		synctest.Wait()
	}
	if a.over.Load() {
		a.g.t.Fatalf("the call has returned %v, want it to wait", <-a.result)
	}
}

// timed turns a TryLock that got nothing into an error. One that was too short for an
// answer is the same here: not of the lock, but of the machine.
func timed(got bool, err error) error {
	if err == nil && !got || rig.Unheard(err) {
		return relock.ErrNotAcquired
	}
	return err
}
