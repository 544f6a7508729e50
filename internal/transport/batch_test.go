package transport_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/transport"
)

// leaders is how many calls are on the wire before others queue.
const leaders = 2

// traffic is a hook that keeps the keys of the scripts in each command or
// pipeline, in the order in which they left, and can hold replies back.
type traffic struct {
	gate chan struct{} // if not nil, replies wait until it is closed

	mu     sync.Mutex
	sent   [][]string
	flying int
	most   int // in flight at once
}

func (f *traffic) pass(cmds []redis.Cmder, send func() error) error {
	var keys []string
	for _, cmd := range cmds {
		if strings.HasPrefix(cmd.Name(), "eval") {
			keys = append(keys, fmt.Sprint(cmd.Args()[3]))
		}
	}
	if keys == nil {
		return send()
	}
	f.mu.Lock()
	f.sent = append(f.sent, keys)
	f.flying++
	f.most = max(f.most, f.flying)
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.flying--
		f.mu.Unlock()
	}()
	err := send()
	if f.gate != nil {
		<-f.gate
	}
	return err
}

func (f *traffic) sizes() (sizes []int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, keys := range f.sent {
		sizes = append(sizes, len(keys))
	}
	return sizes
}

func (f *traffic) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f *traffic) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return f.pass([]redis.Cmder{cmd}, func() error { return next(ctx, cmd) })
	}
}

func (f *traffic) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return f.pass(cmds, func() error { return next(ctx, cmds) })
	}
}

// crowd makes calls, in the order in which they are started.
type crowd struct {
	tr      *transport.Transport
	wg      sync.WaitGroup
	mu      sync.Mutex
	results map[string]transport.Result
	took    map[string]time.Duration
}

func newCrowd(tr *transport.Transport) *crowd {
	return &crowd{tr: tr, results: make(map[string]transport.Result), took: make(map[string]time.Duration)}
}

// call makes one call on a goroutine of its own, and returns when it waits.
func (c *crowd) call(ctx context.Context, timeout time.Duration, name string, call transport.Call) {
	c.wg.Go(func() {
		begin := time.Now()
		reply, err := c.tr.Do(ctx, timeout, call)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.results[name], c.took[name] = transport.Result{Reply: reply, Err: err}, time.Since(begin)
	})
	synctest.Wait()
}

func (c *crowd) lead(ctx context.Context) {
	for i := range leaders {
		name := fmt.Sprint("leader", i)
		c.call(ctx, time.Minute, name, call(name))
	}
}

// batched runs f in a bubble where as many calls as may lead wait for replies
// that have come until open is called.
func batched(t *testing.T, f func(t *testing.T, l *link, c *crowd, sent *traffic, open func())) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t)
		rdb := l.client(t)
		c := newCrowd(newTransport(t, wrapped{rdb}))
		for _, s := range []transport.Call{call("warm"), {Script: plain, Keys: []string{"warm"}}} {
			if _, err := c.tr.Do(t.Context(), 0, s); err != nil {
				t.Fatal(err)
			}
		}
		sent := &traffic{gate: make(chan struct{})}
		rdb.AddHook(sent)
		c.lead(t.Context())
		f(t, l, c, sent, func() { close(sent.gate) })
	})
}

func TestCallsThatComeTogetherGoInOnePipelineInTheirOrder(t *testing.T) {
	batched(t, func(t *testing.T, l *link, c *crowd, sent *traffic, open func()) {
		var want []string
		for i := range 24 {
			name := fmt.Sprint("k", i)
			want = append(want, name)
			c.call(t.Context(), time.Minute, name, call(name))
		}
		time.Sleep(10 * time.Millisecond)
		open()
		c.wg.Wait()
		if got := sent.sizes(); !slices.Equal(got, []int{1, 1, 24}) {
			t.Errorf("sent %v at once", got)
		}
		if got := slices.Concat(sent.sent[leaders:]...); !slices.Equal(got, want) {
			t.Error("calls overtook each other")
		}
		for name, r := range c.results {
			if r.Err != nil || r.Reply[0] != int64(1) {
				t.Fatalf("%s: %v, want a first run", name, r)
			}
		}
	})
}

func TestCommandOfABatchFailsAlone(t *testing.T) {
	batched(t, func(t *testing.T, l *link, c *crowd, sent *traffic, open func()) {
		for i := range 9 {
			name, one := fmt.Sprint("k", i), call(fmt.Sprint("k", i))
			switch i {
			case 0, 4:
				one.Script = fails // and cold
			case 5:
				one.Script = empty
			}
			c.call(t.Context(), time.Minute, name, one)
		}
		open()
		c.wg.Wait()
		for name, r := range c.results {
			switch name {
			case "k0", "k4":
				if r.Err == nil || !strings.Contains(r.Err.Error(), "SORRY") || transport.Classify(r.Err) != transport.Refused {
					t.Errorf("%s: %v, want refused", name, r.Err)
				}
			case "k5":
				if !errors.Is(r.Err, redis.Nil) {
					t.Errorf("%s: %v, want redis.Nil", name, r.Err)
				}
			default:
				if r.Err != nil || r.Reply[0] != int64(1) {
					t.Errorf("%s: %v, want a first run", name, r)
				}
			}
		}
		if got := sent.sizes(); !slices.Equal(got, []int{1, 1, 9, 3}) {
			t.Errorf("sent %v at once, want the three cold ones again", got)
		}
	})
}

func TestBatchOnAServerWithoutScriptsRunsEachOnce(t *testing.T) {
	batched(t, func(t *testing.T, l *link, c *crowd, sent *traffic, open func()) {
		for i := range 9 {
			name := fmt.Sprint("k", i)
			c.call(t.Context(), time.Minute, name, transport.Call{Script: incr2, Keys: []string{name}})
		}
		open()
		c.wg.Wait()
		for name, r := range c.results {
			if r.Err != nil || r.Reply[0] != int64(1) {
				t.Errorf("%s: %v, want a first run", name, r)
			}
		}
		if got := sent.sizes(); !slices.Equal(got, []int{1, 1, 9, 9}) {
			t.Errorf("sent %v at once", got)
		}
	})
}

// incr2 is a script that no server knows yet.
var incr2 = load("incr2", `return {redis.call('incr', KEYS[1])}`)

func TestMemberOfABatchLeavesAlone(t *testing.T) {
	batched(t, func(t *testing.T, l *link, c *crowd, sent *traffic, open func()) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c.call(ctx, time.Minute, "leaves", call("leaves"))
		c.call(t.Context(), 100*time.Millisecond, "late", call("late"))
		c.call(t.Context(), time.Minute, "stays", call("stays"))
		time.Sleep(50 * time.Millisecond) // on the wire by now
		cancel()
		time.Sleep(time.Second)
		open()
		c.wg.Wait()
		if r := c.results["leaves"]; !errors.Is(r.Err, context.Canceled) || transport.Classify(r.Err) != transport.Unknown || c.took["leaves"] != 50*time.Millisecond {
			t.Errorf("who left: %v after %v, want canceled, unknown, at once", r.Err, c.took["leaves"])
		}
		if r := c.results["late"]; !errors.Is(r.Err, transport.ErrNoReply) || transport.Classify(r.Err) != transport.Unknown || c.took["late"] != 100*time.Millisecond {
			t.Errorf("who was late: %v after %v, want no reply, unknown, in time", r.Err, c.took["late"])
		}
		if r := c.results["stays"]; r.Err != nil {
			t.Errorf("who stayed: %v", r.Err)
		}
		for _, key := range []string{"leaves", "late", "stays"} {
			if got := l.count(t, key); got != 1 {
				t.Errorf("%s ran %d times", key, got)
			}
		}
	})
}

func TestCallThatLeavesTheQueueIsNeverSent(t *testing.T) {
	batched(t, func(t *testing.T, l *link, c *crowd, sent *traffic, open func()) {
		ctx, cancel := context.WithCancel(t.Context())
		for i := range 100 {
			name := fmt.Sprint("leaves", i)
			c.call(ctx, time.Minute, name, call(name))
		}
		c.call(t.Context(), 100*time.Microsecond, "late", call("late"))
		c.call(t.Context(), time.Minute, "stays", call("stays"))
		cancel()
		time.Sleep(200 * time.Microsecond)
		open()
		c.wg.Wait()
		for name, r := range c.results {
			switch {
			case strings.HasPrefix(name, "leaves"):
				if !errors.Is(r.Err, context.Canceled) || transport.Classify(r.Err) != transport.NotExecuted {
					t.Errorf("%s: %v, want canceled, not executed", name, r.Err)
				}
			case name == "late":
				if !errors.Is(r.Err, transport.ErrNoReply) || transport.Classify(r.Err) != transport.NotExecuted {
					t.Errorf("%s: %v, want no reply, not executed", name, r.Err)
				}
			case r.Err != nil:
				t.Errorf("%s: %v", name, r.Err)
			}
		}
		c.tr.Wait()
		if l.count(t, "late")+l.count(t, "leaves7") != 0 || l.count(t, "stays") != 1 {
			t.Error("one that left the queue was sent, or one that stayed was not")
		}
	})
}

func TestBatchWhoseReplyIsLostIsUnknownAndRunsOnce(t *testing.T) {
	batched(t, func(t *testing.T, l *link, c *crowd, sent *traffic, open func()) {
		for i := range 9 {
			name := fmt.Sprint("k", i)
			c.call(t.Context(), 0, name, call(name))
		}
		l.set(swallow)
		open()
		c.wg.Wait()
		for name, r := range c.results {
			if strings.HasPrefix(name, "leader") {
				continue // answered before that
			}
			if r.Err == nil || transport.Classify(r.Err) != transport.Unknown {
				t.Errorf("%s: %v, want unknown", name, r)
			}
			if got := l.count(t, name); got != 1 {
				t.Errorf("%s ran %d times", name, got)
			}
		}
	})
}

func TestHungBatchesHoldUpNobody(t *testing.T) {
	batched(t, func(t *testing.T, l *link, c *crowd, sent *traffic, open func()) {
		gate := sent.gate
		sent.gate = nil // for those that follow
		defer close(gate)
		for i := range 10 {
			name := fmt.Sprint("k", i)
			c.call(t.Context(), time.Minute, name, call(name))
		}
		time.Sleep(20 * time.Millisecond)
		c.mu.Lock()
		defer c.mu.Unlock()
		for i := range 10 {
			name := fmt.Sprint("k", i)
			if r, ok := c.results[name]; !ok || r.Err != nil || c.took[name] > time.Millisecond {
				t.Errorf("%s: answered %v after %v, %v", name, ok, c.took[name], r.Err)
			}
		}
	})
}

func TestHungServerGetsNoEndOfBatches(t *testing.T) {
	batched(t, func(t *testing.T, l *link, c *crowd, sent *traffic, open func()) {
		for i := range 50 {
			name := fmt.Sprint("k", i)
			c.call(t.Context(), time.Minute, name, call(name))
			time.Sleep(2 * time.Millisecond)
		}
		if sent.most != 32 {
			t.Errorf("%d batches at once, want 32", sent.most)
		}
		open()
		c.wg.Wait()
		for name, r := range c.results {
			if r.Err != nil {
				t.Errorf("%s: %v", name, r.Err)
			}
		}
	})
}

func TestIdleWorkersEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it panics where a goroutine is left
		tr := transport.New(newLink(t).client(t))
		if _, err := tr.Do(t.Context(), time.Second, call("k")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(200 * time.Millisecond)
	})
}

func TestHungNodeHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// go-redis asks for the layout on a goroutine of its own, for so long.
		defer time.Sleep(time.Second)
		links := map[string]*link{"192.0.2.1:6379": newLink(t), "192.0.2.2:6379": newLink(t)}
		rdb := redis.NewClusterClient(&redis.ClusterOptions{
			ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
				return []redis.ClusterSlot{
					{Start: 0, End: 8191, Nodes: []redis.ClusterNode{{Addr: "192.0.2.1:6379"}}},
					{Start: 8192, End: 16383, Nodes: []redis.ClusterNode{{Addr: "192.0.2.2:6379"}}},
				}, nil
			},
			Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
				return links[addr].dial(ctx, network, addr)
			},
		})
		defer rdb.Close()
		sent := new(traffic)
		rdb.AddHook(sent)
		c := newCrowd(newTransport(t, rdb))
		on := make(map[*link][]string)
		for i := range 40 {
			key := fmt.Sprint("k", i)
			node, err := rdb.MasterForKey(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			l := links[node.Options().Addr]
			on[l] = append(on[l], key)
			if _, err := c.tr.Do(t.Context(), 0, call(key)); err != nil {
				t.Fatal(err)
			}
		}
		hung, well := links["192.0.2.1:6379"], links["192.0.2.2:6379"]
		hung.set(swallow)
		sent.gate = make(chan struct{})
		for i := range 15 {
			c.call(t.Context(), time.Second, on[hung][i], call(on[hung][i]))
			c.call(t.Context(), time.Second, on[well][i], call(on[well][i]))
		}
		time.Sleep(5 * time.Millisecond)
		close(sent.gate)
		synctest.Wait()
		for _, key := range on[well][:15] {
			c.mu.Lock()
			if r, ok := c.results[key]; !ok || r.Err != nil {
				t.Errorf("%s: answered %v, %v", key, ok, r.Err)
			}
			c.mu.Unlock()
		}
		mixed := append(slices.Clone(on[hung][15:17]), on[well][15:17]...)
		var calls []transport.Call
		for _, key := range mixed {
			calls = append(calls, call(key))
		}
		for i, r := range c.tr.DoAll(t.Context(), time.Second, calls) {
			if (r.Err != nil) != (i < 2) {
				t.Errorf("call %d of a batch over both: %v", i, r)
			}
		}
		c.wg.Wait()
		if !slices.Contains(sent.sizes(), 13) {
			t.Errorf("sent %v at once, want the 13 that queue for a node", sent.sizes())
		}
	})
}
