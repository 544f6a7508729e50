package transport_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/transport"
)

// leaders is how many calls are on the wire before others queue.
const leaders = 2

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

// Fails when a permission that is missing for the text goes unseen, as others were sent beside.
func TestCallThatIsToBeSentInFullIsSoInAPipelineToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rdb := newLink(t).client(t)
		tr := newTransport(t, rdb)
		if _, err := tr.Do(t.Context(), 0, call("warm")); err != nil {
			t.Fatal(err)
		}
		seen := new(recorder)
		rdb.AddHook(seen)
		full := call("b")
		full.InFull = true
		for i, r := range tr.DoAll(t.Context(), 0, []transport.Call{call("a"), full, call("c")}) {
			if r.Err != nil || r.Reply[0] != int64(1) {
				t.Errorf("call %d: %v, want a first run", i, r)
			}
		}
		if want := []string{"evalsha", "eval", "evalsha"}; !slices.Equal(seen.names[:min(len(want), len(seen.names))], want) { // a connection may be made after that
			t.Errorf("sent by %v, want %v", seen.names, want)
		}
	})
}

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

func TestGoroutineOfACallEndsWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it panics where a goroutine is left
		tr := transport.New(wrapped{newLink(t).client(t)})
		if _, err := tr.Do(t.Context(), time.Second, call("k")); err != nil {
			t.Fatal(err)
		}
	})
}
