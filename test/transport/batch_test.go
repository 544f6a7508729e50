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

	"github.com/relock-go/relock/internal/script"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/virtual"
)

// nine are calls with keys of their own.
func nine(s *script.Script) (calls []transport.Call) {
	for i := range 9 {
		one := call(fmt.Sprint("k", i))
		one.Script = s
		calls = append(calls, one)
	}
	return calls
}

// piped returns a Transport whose server knows incr and plain, and the traffic that it has from now on.
func piped(t *testing.T) (*link, *transport.Transport, *traffic) {
	t.Helper()
	l, sent := newLink(t), new(traffic)
	rdb := l.client(t)
	tr := newTransport(t, rdb)
	for _, s := range []transport.Call{call("warm"), {Script: plain, Keys: []string{"warm"}}} {
		if _, err := tr.Do(t.Context(), time.Minute, s); err != nil {
			t.Fatal(err)
		}
	}
	rdb.AddHook(sent)
	return l, tr, sent
}

// Fails when calls of one pipeline share an error, or overtake each other.
func TestACallOfAPipelineFailsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, tr, sent := piped(t)
		calls := nine(incr)
		calls[0].Script, calls[4].Script, calls[5].Script = fails, fails, empty // cold ones
		for i, r := range tr.DoAll(t.Context(), time.Minute, calls) {
			switch i {
			case 0, 4:
				if r.Err == nil || !strings.Contains(r.Err.Error(), "SORRY") || transport.Classify(r.Err) != transport.Refused {
					t.Errorf("%d: %v, want refused", i, r.Err)
				}
			case 5:
				if !errors.Is(r.Err, redis.Nil) {
					t.Errorf("%d: %v, want redis.Nil", i, r.Err)
				}
			default:
				if r.Err != nil || r.Reply[0] != int64(1) {
					t.Errorf("%d: %v, want a first run", i, r)
				}
			}
		}
		if want := [][]string{{"k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8"}, {"k0", "k4", "k5"}}; !slices.EqualFunc(sent.sent, want, slices.Equal) {
			t.Errorf("sent %v at once, want %v", sent.sent, want)
		}
	})
}

func TestAPipelineToAServerWithoutScriptsRunsEachOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, tr, sent := piped(t)
		for i, r := range tr.DoAll(t.Context(), time.Minute, nine(incr2)) {
			if r.Err != nil || r.Reply[0] != int64(1) {
				t.Errorf("%d: %v, want a first run", i, r)
			}
		}
		if got := sent.sizes(); !slices.Equal(got, []int{9, 9}) {
			t.Errorf("sent %v at once", got)
		}
	})
}

// incr2 is a script that no server knows yet.
var incr2 = load("incr2", `return {redis.call('incr', KEYS[1])}`)

func TestWhoLeavesACallOnThePoolLeavesAlone(t *testing.T) {
	held(t, func(t *testing.T, l *link, c *crowd, sent *traffic, open func()) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c.call(ctx, time.Minute, "leaves", call("leaves"))
		c.call(t.Context(), 100*time.Millisecond, "late", call("late"))
		c.call(t.Context(), time.Minute, "stays", call("stays"))
		virtual.Sleep(50 * time.Millisecond) // on the wire by now
		cancel()
		virtual.Sleep(time.Second)
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

// Fails when a call that waits for a connection of the pool is sent after its caller has left.
func TestACallThatGetsNoConnectionIsNeverSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t)
		rdb := l.client(t, func(o *redis.Options) { o.PoolSize = 1 })
		c := newCrowd(newTransport(t, wrapped{rdb}))
		open := l.close()
		c.call(t.Context(), time.Minute, "first", call("first"))
		ctx, cancel := context.WithCancel(t.Context())
		c.call(ctx, time.Minute, "leaves", call("leaves"))
		c.call(t.Context(), time.Millisecond, "late", call("late"))
		c.call(t.Context(), time.Minute, "stays", call("stays"))
		cancel()
		virtual.Sleep(2 * time.Millisecond)
		open()
		c.wg.Wait()
		for name, want := range map[string]error{"first": nil, "leaves": context.Canceled, "late": transport.ErrNoReply, "stays": nil} {
			if err := c.results[name].Err; !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", name, err, want)
			}
		}
		c.tr.Wait()
		if l.count(t, "late")+l.count(t, "leaves") != 0 || l.count(t, "stays") != 1 {
			t.Error("one that left was sent, or one that stayed was not")
		}
	})
}

func TestAPipelineWhoseReplyIsLostIsUnknownAndRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, tr, _ := piped(t)
		l.set(swallow)
		for i, r := range tr.DoAll(t.Context(), time.Minute, nine(incr)) {
			if r.Err == nil || transport.Classify(r.Err) != transport.Unknown {
				t.Errorf("%d: %v, want unknown", i, r)
			}
			if got := l.count(t, fmt.Sprint("k", i)); got != 1 {
				t.Errorf("%d ran %d times", i, got)
			}
		}
	})
}

// Fails when a script that the server did not know, and whose text gets no answer, takes the answers of others along.
func TestAnswersOfAPipelineStayThoughTheTextsAreLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, tr, sent := piped(t)
		calls := nine(incr)
		calls[3].Script = incr2
		sent.before = func(n int) {
			if n == 2 {
				l.set(swallow)
			}
		}
		for i, r := range tr.DoAll(t.Context(), 2*time.Second, calls) {
			switch {
			case i == 3 && (r.Err == nil || transport.Classify(r.Err) != transport.Unknown):
				t.Errorf("%d: %v, want unknown", i, r)
			case i != 3 && (r.Err != nil || r.Reply[0] != int64(1)):
				t.Errorf("%d: %v, want a first run", i, r)
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
