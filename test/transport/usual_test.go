package transport_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/transport"
)

// Two scripts, and the one that does for many what each of them does: not for what is odd.
// "groups" has how many calls were made together.
var (
	ends  = load("ends", `redis.call('INCR', KEYS[1]) return 'ended ' .. ARGV[1]`)
	takes = load("takes", `redis.call('INCR', KEYS[1]) return {ARGV[1], ARGV[2]}`)
	both  = load("both", `
redis.call('RPUSH', 'groups', #KEYS)
local replies, at = {}, 2
for i = 1, #KEYS do
  if i == ARGV[1] + 1 then
    at = at + 1
  end
  if ARGV[at] == 'torn' then
    return {1}
  elseif ARGV[at] == 'unknown' then
    return redis.error_reply('upstream failure')
  elseif ARGV[at] == 'refused' then
    return redis.error_reply('SORRY not today')
  elseif ARGV[at] == 'odd' then
    replies[i] = 0
  else
    redis.call('INCR', KEYS[i])
    replies[i] = i > ARGV[1] + 0 and {ARGV[at], ARGV[ARGV[1] + 2]} or 'ended ' .. ARGV[at]
  end
  at = at + 1
end
return replies`)
	usualEnds  = &transport.Usual{Script: both, First: true, Part: []int{0}}
	usualTakes = &transport.Usual{Script: both, Common: []int{1}, Part: []int{0}}
)

func end(key, what string) transport.Call {
	return transport.Call{Script: ends, Keys: []string{key}, Args: []any{what}, Usual: usualEnds}
}

func take(key, what, how string) transport.Call {
	return transport.Call{Script: takes, Keys: []string{key}, Args: []any{what, how}, Usual: usualTakes}
}

// grouped runs f in a bubble where calls that f makes wait, until go is called, for one
// that writes: so they are written together. The server knows all scripts but both.
func grouped(t *testing.T, f func(t *testing.T, l *link, c *crowd, gather func(of func()))) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t)
		var gate atomic.Pointer[chan struct{}] // what who writes waits for
		c := newCrowd(newTransport(t, l.client(t, func(o *redis.Options) {
			o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				c, err := l.dial(ctx, network, addr)
				return gated{c, &gate}, err
			}
		})))
		for _, warm := range []transport.Call{call("warm"), end("warm", "x"), take("warm", "x", "y")} {
			if _, err := c.tr.Do(t.Context(), time.Minute, warm); err != nil {
				t.Fatal(err)
			}
		}
		f(t, l, c, func(of func()) {
			wait := make(chan struct{})
			gate.Store(&wait)
			c.call(t.Context(), time.Minute, "writer", call("writer"))
			of()
			gate.Store(nil)
			close(wait)
			c.wg.Wait()
		})
	})
}

// gated is a connection that does not write while there is a gate, until it is closed.
type gated struct {
	net.Conn
	gate *atomic.Pointer[chan struct{}]
}

func (c gated) Write(p []byte) (int, error) {
	if wait := c.gate.Load(); wait != nil {
		<-*wait
	}
	return c.Conn.Write(p)
}

// mixed are calls of all kinds, by their keys.
func mixed() map[string]transport.Call {
	calls := map[string]transport.Call{}
	for i := range 20 {
		for kind, c := range map[string]transport.Call{
			"end": end(fmt.Sprint("end", i), fmt.Sprint("end", i)), "take": take(fmt.Sprint("take", i), fmt.Sprint("take", i), "a"), "plain": call(fmt.Sprint("plain", i)),
		} {
			calls[fmt.Sprint(kind, i)] = c
		}
	}
	calls["z"] = take("z", "z", "b") // the last of them, and has not the same in common
	return calls
}

// want demands the reply of a call's own script, of each of mixed, and that each was run once.
func want(t *testing.T, l *link, c *crowd, round int) {
	t.Helper()
	for name, made := range mixed() {
		r := c.results[name]
		var reply []any
		switch made.Script {
		case ends:
			reply = []any{"ended " + name}
		case takes:
			reply = []any{name, made.Args[1]}
		default:
			reply = []any{int64(round), "x"}
		}
		if r.Err != nil || !slices.Equal(r.Reply, reply) || l.count(t, name) != round {
			t.Errorf("%s: %v after %d runs, want %v after %d", name, r, l.count(t, name), reply, round)
		}
	}
}

// Fails when a call gets another's reply, is run twice or not at all, is made with one that
// it has not enough in common with, or when a group is larger than it may be.
func TestCallsThatComeTogetherAreMadeByOneScript(t *testing.T) {
	grouped(t, func(t *testing.T, l *link, c *crowd, gather func(of func())) {
		for round := 1; round <= 3; round++ {
			gather(func() {
				all := mixed()
				for _, name := range slices.Sorted(maps.Keys(all)) {
					c.call(t.Context(), time.Minute, name, all[name])
				}
			})
			want(t, l, c, round)
			groups, _ := l.srv.List("groups")
			// The first time the server does not know the script, and each is made by itself.
			if want := [][]string{nil, {"32", "8"}, {"32", "8", "32", "8"}}[round-1]; !slices.Equal(groups, want) {
				t.Errorf("round %d: groups of %v, want %v", round, groups, want)
			}
		}
	})
}

// Fails when what the script leaves is not made by itself, or others are, or when the next
// calls are made together in vain as well.
func TestCallThatIsUnusualIsMadeByItself(t *testing.T) {
	for what, all := range map[string]bool{"odd": false, "refused": true} {
		t.Run(what, func(t *testing.T) {
			grouped(t, func(t *testing.T, l *link, c *crowd, gather func(of func())) {
				for round := range 4 {
					gather(func() {
						for i := range 5 {
							c.call(t.Context(), time.Minute, fmt.Sprint(i), take(fmt.Sprint(round, i), []string{what, "usual"}[min(i, 1)], "a"))
						}
					})
					for i := range 5 {
						if r := c.results[fmt.Sprint(i)]; r.Err != nil || r.Reply[0] != []string{what, "usual"}[min(i, 1)] || l.count(t, fmt.Sprint(round, i)) != 1 {
							t.Errorf("round %d, call %d: %v after %d runs", round, i, r, l.count(t, fmt.Sprint(round, i)))
						}
					}
				}
				groups, _ := l.srv.List("groups")
				if !slices.Equal(groups, []string{"5"}) && !all || len(groups) > 1 {
					t.Errorf("groups of %v, want one of 5", groups)
				}
			})
		})
	}
}

// Fails when who leaves takes the others along, or is given to the next what is its.
func TestWhoLeavesAGroupLeavesAlone(t *testing.T) {
	grouped(t, func(t *testing.T, l *link, c *crowd, gather func(of func())) {
		for round := 1; round <= 3; round++ {
			gather(func() {
				open := l.close()
				ctx, cancel := context.WithCancel(t.Context())
				for i := range 6 {
					ctx := []context.Context{t.Context(), ctx}[i%2]
					c.call(ctx, time.Minute, fmt.Sprint(i), take(fmt.Sprint("k", i), fmt.Sprint(round, i), "a"))
				}
				go func() {
					synctest.Wait()
					cancel()
					synctest.Wait()
					open()
				}()
			})
			for i := range 6 {
				r := c.results[fmt.Sprint(i)]
				if left := errors.Is(r.Err, context.Canceled); i%2 == 1 && !left || i%2 == 0 && (r.Err != nil || r.Reply[0] != fmt.Sprint(round, i)) {
					t.Errorf("round %d, call %d: %v", round, i, r)
				}
			}
		}
	})
}

// Fails when a call of a group waits for ever, is run twice, or is taken for one that was not run.
func TestGroupWhoseReplyIsLostIsUnknown(t *testing.T) {
	for name, lose := range map[string]func(l *link) (what string){
		"cut":  func(l *link) string { l.set(cut); return "usual" },
		"torn": func(*link) string { return "torn" },
		// What a proxy says whose server does not answer.
		"unknown": func(*link) string { return "unknown" },
	} {
		t.Run(name, func(t *testing.T) {
			grouped(t, func(t *testing.T, l *link, c *crowd, gather func(of func())) {
				gather(func() {
					for i := range 2 {
						c.call(t.Context(), time.Minute, fmt.Sprint(i), take("warm", "x", "a"))
					}
				})
				gather(func() {
					what := lose(l)
					for i := range 4 {
						c.call(t.Context(), time.Minute, fmt.Sprint(i), take(fmt.Sprint("k", i), what, "a"))
					}
				})
				l.set(none)
				for i := range 4 {
					key := fmt.Sprint("k", i)
					if r := c.results[fmt.Sprint(i)]; r.Err == nil || transport.Classify(r.Err) != transport.Unknown || l.count(t, key) > map[string]int{"cut": 1}[name] {
						t.Errorf("call %d: %v after %d runs, want an unknown outcome", i, r, l.count(t, key))
					}
				}
				if _, err := c.tr.Do(t.Context(), time.Minute, take("next", "x", "y")); err != nil {
					t.Errorf("the next call: %v", err)
				}
			})
		})
	}
}
