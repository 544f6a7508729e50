package contract_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// A flowTest is a tree of steps in several processes, each of which locks nodes that all share.
type flowTest struct {
	t       *testing.T
	clients []*relock.Client
	fanOut  int
	levels  int
	prune   float64 // of the steps, so many are left out with all below them

	mu      sync.Mutex // guards the following fields
	random  *rand.Rand
	inside  map[string]map[*relock.Hold]visit // by node
	entered int                               // steps that have entered what an ancestor holds
	steps   int
	errs    map[string]int
}

type visit struct {
	owner string
	read  bool
}

func (f *flowTest) float() float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.random.Float64()
}

func (f *flowTest) n(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.random.IntN(n)
}

// node is one of the nodes of a level, on a side that the step asks for. Its kind is always the same.
func (f *flowTest) node(c *relock.Client, name string, read bool) *relock.Lock {
	switch name[len(name)-1] {
	case '0':
		return c.NewLock(name, relock.TTL(3*time.Second))
	case '1':
		return c.NewLock(name, relock.Fair(), relock.TTL(3*time.Second))
	}
	rw := c.NewRWLock(name, relock.TTL(3*time.Second))
	if read {
		return rw.RLocker()
	}
	return rw.WLocker()
}

// in notes that an owner is inside a node, and fails the test if somebody is who must not be.
func (f *flowTest) in(node string, h *relock.Hold, me visit) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.inside[node] == nil {
		f.inside[node] = map[*relock.Hold]visit{}
	}
	for other, who := range f.inside[node] {
		related := me.owner == who.owner || strings.HasPrefix(me.owner, who.owner+"~.")
		if !related && (!me.read || !who.read) && other.Err() == nil && h.Err() == nil {
			f.t.Errorf("%s: %v is inside beside %v", node, me, who)
		}
	}
	f.inside[node][h] = me
	f.steps++
}

func (f *flowTest) out(node string, h *relock.Hold) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.inside[node], h)
}

func (f *flowTest) failed(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case errors.Is(err, relock.ErrLost):
		f.errs["lost"]++
	case errors.Is(err, context.Canceled):
		f.errs["canceled"]++
	case errors.Is(err, relock.ErrUpgrade):
		f.errs["upgrade"]++
	case errors.Is(err, relock.ErrUnavailable), errors.Is(err, relock.ErrUnconfirmed):
		f.errs["unavailable"]++
	default:
		f.t.Error(err)
	}
}

// during locks a node for as long as fn runs, in any of the processes. fn's context ends with the hold: steps
// that went on after a loss could wait for each other in a circle.
func (f *flowTest) during(ctx context.Context, node string, read bool, fn func(ctx context.Context, h *relock.Hold)) {
	owner, _ := relock.OwnerFrom(ctx)
	h, err := f.node(f.clients[f.n(len(f.clients))], node, read).Acquire(ctx)
	if err != nil {
		f.failed(err)
		return
	}
	f.in(node, h, visit{owner, read})
	fn(h.Context(ctx), h)
	f.out(node, h)
	if err := h.Release(); err != nil {
		f.failed(err)
	}
}

// step locks a node of its level, enters one that the flow above it holds, and has further steps run
// beside each other in branches. held are the nodes of the flow, and whether it only reads them.
func (f *flowTest) step(ctx context.Context, level int, held map[string]bool) {
	if level > 1 && f.float() < f.prune {
		return
	}
	if f.float() < 0.05 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		time.AfterFunc(time.Duration(f.n(100))*time.Millisecond, cancel)
		defer cancel()
	}
	for node, read := range held { // any of them
		token := int64(0)
		f.during(ctx, node, read || f.n(2) == 0 && node[len(node)-1] == '2', func(_ context.Context, h *relock.Hold) {
			token = h.Token()
			virtual.Sleep(time.Duration(f.n(3)) * time.Millisecond)
		})
		if token != 0 {
			f.mu.Lock()
			f.entered++
			f.mu.Unlock()
		}
		break
	}
	node, read := fmt.Sprintf("level/%d/%d", level, f.n(3)), f.n(2) == 0
	read = read && node[len(node)-1] == '2'
	f.during(ctx, node, read, func(ctx context.Context, _ *relock.Hold) {
		virtual.Sleep(time.Duration(f.n(5)) * time.Millisecond)
		if level == f.levels {
			return
		}
		ours := map[string]bool{node: read}
		maps.Copy(ours, held)
		var all sync.WaitGroup
		for range f.fanOut {
			branch := relock.WithChildOwner(ctx)
			all.Go(func() { f.step(branch, level+1, ours) })
		}
		all.Wait()
	})
}

// TestBranchesOfAWorkflowNeverMeet runs flows whose steps lock shared nodes in eight processes. Steps are
// cancelled, and processes are cut off, at random.
func TestBranchesOfAWorkflowNeverMeet(t *testing.T) {
	for seed := range rig.Rounds(3, 40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				f := &flowTest{
					t: t, fanOut: 4, levels: 5, random: rand.New(rand.NewPCG(uint64(seed), 1)),
					inside: map[string]map[*relock.Hold]visit{}, errs: map[string]int{},
				}
				if seed > 0 { // the first tree has more than a thousand steps
					f.prune = 0.35
				}
				for range 8 {
					c, link := x.Linked()
					f.clients = append(f.clients, c)
					if seed%3 > 0 {
						time.AfterFunc(time.Duration(f.n(3000))*time.Millisecond, func() {
							heal := link.Cut()
							time.AfterFunc(10*time.Second, heal)
						})
					}
				}
				var all sync.WaitGroup
				for i := range 2 {
					all.Go(func() {
						flow := relock.WithOwner(t.Context(), fmt.Sprintf("flow %d", i))
						f.during(flow, fmt.Sprintf("root/%d", i), false, func(flow context.Context, _ *relock.Hold) {
							for range 2 {
								f.step(relock.WithChildOwner(flow), 1, map[string]bool{fmt.Sprintf("root/%d", i): false})
							}
						})
					})
				}
				done := make(chan struct{})
				go func() { all.Wait(); close(done) }()
				select {
				case <-done:
				case <-time.After(5 * time.Minute):
					for _, key := range x.Server.Direct().Keys() {
						fields, _ := x.Redis.HGetAll(t.Context(), key).Result()
						t.Log(key, fields)
					}
					t.Fatal("somebody waits for ever")
				}
				virtual.Sleep(20 * time.Second) // releases that went unanswered, and leases
				synctest.Wait()
				t.Logf("%d steps, %d entrances, %v", f.steps, f.entered, f.errs)
				if f.entered == 0 {
					t.Error("no step has entered what an ancestor holds")
				}
				for _, key := range x.Server.Direct().Keys() {
					if strings.HasPrefix(key, "relock:h:") {
						wantNothingLeft(t, x, key)
					}
				}
			})
		})
	}
}

// A free lock's hash has these fields, and nonces that no late copy of a request revives.
var free, ended = map[string]bool{"kind": true, "token": true, "crowd": true, "ended": true}, map[string]bool{"e:": true, "n:": true}

// wantNothingLeft fails the test if a free lock has any trace of who held it or waited for it.
func wantNothingLeft(t *testing.T, x *rig.Lab, key string) {
	t.Helper()
	name := strings.TrimSuffix(strings.TrimPrefix(key, "relock:h:{"), "}")
	if got, err := x.Eye.NewLock("probe/"+name).TryLock(t.Context(), 0); !got || err != nil {
		t.Errorf("probe: %v, %v", got, err)
	}
	fields, err := x.Redis.HGetAll(t.Context(), key).Result()
	rig.Must(t, err)
	for field, value := range fields {
		if name[:5] != "probe" && !free[field] && !ended[field[:2]] {
			t.Errorf("%s: %s = %q is left", name, field, value)
		}
	}
}

// A writing branch leaves, and hundreds of reading branches of its flow wait. One script does not let in all of them.
func TestManyBranchesThatReadAreLetInTogether(t *testing.T) {
	for _, name := range []string{"flow", "flow\nof two lines"} {
		t.Run(name, func(t *testing.T) { manyBranchesRead(t, name) })
	}
}

func manyBranchesRead(t *testing.T, name string) {
	t.Helper()
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		const branches = 300
		c := x.Client()
		lock := func() *relock.RWLock { return c.NewRWLock("a") }
		flow := x.By(name)
		outer := enters(t, lock().WLocker(), flow)
		writes := enters(t, lock().WLocker(), relock.WithChildOwner(flow))
		var inside atomic.Int32
		holds := make(chan *relock.Hold, branches)
		for range branches {
			go func() {
				h, err := lock().RLocker().Acquire(relock.WithChildOwner(flow))
				if err != nil {
					t.Error(err)
				}
				inside.Add(1)
				holds <- h
			}()
		}
		virtual.Sleep(time.Second)
		synctest.Wait()
		if n := inside.Load(); n != 0 {
			t.Fatalf("%d read beside a branch that writes", n)
		}
		rig.Must(t, writes.Release())
		synctest.Wait()
		if n := inside.Load(); n != branches {
			t.Errorf("%d of %d branches are let in when the one that writes has gone", n, branches)
		}
		for range branches {
			rig.Must(t, (<-holds).Release())
		}
		rig.Must(t, outer.Release())
	})
}

// The root unlocks while a branch is inside, and hundreds of others wait: none of them has an ancestor that holds any more.
// Fails when the scripts look for branches that may enter, over and over, and pass the lock on to nobody.
func TestBranchesWhoseRootHasUnlockedGetTheLockInTurn(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		const branches = 300
		c, link := x.Linked()
		flow := x.By("flow")
		outer := enters(t, c.NewLock("a"), flow)
		inner := enters(t, c.NewLock("a"), relock.WithChildOwner(flow))
		ctx, cancel := context.WithCancel(flow)
		holds := make(chan *relock.Hold, branches)
		var calls sync.WaitGroup
		for range branches {
			calls.Go(func() {
				if h, err := c.NewLock("a").Acquire(relock.WithChildOwner(ctx)); err == nil {
					holds <- h
				}
			})
		}
		virtual.Sleep(time.Second)
		synctest.Wait()
		rig.Must(t, outer.Release())
		synctest.Wait()
		sent := link.Commands()["evalsha"]
		_ = inner.Release() // it is lost
		for i := range 5 {
			synctest.Wait()
			select {
			case h := <-holds:
				rig.Must(t, h.Release())
			default:
				t.Fatalf("nobody holds after %d holds", i)
			}
		}
		if n := link.Commands()["evalsha"] - sent; n > 40 {
			t.Errorf("%d commands for six releases", n)
		}
		cancel()
		calls.Wait()
		for len(holds) > 0 {
			rig.Must(t, (<-holds).Release())
		}
	})
}

// TestBranchesOfABranchAreLetInThoughTheRootHolds: hundreds wait for what the branch holds, and the root's hold has
// nothing for them. Fails when the scripts look there first, over and over.
func TestBranchesOfABranchAreLetInThoughTheRootHolds(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		const branches = 300
		c := x.Client()
		flow := x.By("flow")
		outer := enters(t, c.NewLock("a"), flow)
		below := relock.WithChildOwner(flow)
		middle := enters(t, c.NewLock("a"), below)
		inner := enters(t, c.NewLock("a"), relock.WithChildOwner(below))
		ctx, cancel := context.WithCancel(below)
		holds := make(chan *relock.Hold, branches)
		var calls sync.WaitGroup
		for range branches {
			calls.Go(func() {
				if h, err := c.NewLock("a").Acquire(relock.WithChildOwner(ctx)); err == nil {
					holds <- h
				}
			})
		}
		virtual.Sleep(time.Second)
		synctest.Wait()
		rig.Must(t, inner.Release())
		for i := range 5 {
			synctest.Wait()
			select {
			case h := <-holds:
				rig.Must(t, h.Release())
			default:
				t.Fatalf("nobody holds after %d holds", i)
			}
		}
		cancel()
		calls.Wait()
		for len(holds) > 0 {
			rig.Must(t, (<-holds).Release())
		}
		rig.Must(t, middle.Release())
		rig.Must(t, outer.Release())
	})
}
