package lua_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// drawGroup makes releases and requests: of each at most one for a lock. No session is
// released that is asked for at the same time: its client waits for the answer.
func drawGroup(rng *rand.Rand, now time.Time, n int, holders func(hash string) string) (group []step, releases int) {
	kind, block, ttl := []string{"plain", "rw"}[n/100%2], 1+32*rng.IntN(2), 300+rng.IntN(9000)
	for _, script := range []string{"release", "acquire"} {
		for i, hash := range manyHashes {
			if rng.IntN(2) == 0 {
				continue
			}
			p := party{fmt.Sprintf("n%031d", rng.IntN(1_000_000)), "c0", fmt.Sprint("~owner ", rng.IntN(4)), ""}
			s := step{script, []string{hash, manyQueues[i]}, nil}
			if script == "acquire" {
				s.args = p.asks(rng, now, kind, false)
				s.args[5] = fmt.Sprint(1+rng.IntN(3), []string{" 1 0 ", " 0 1 "}[rng.IntN(2)*(n/100%2)], ttl, " ") // readers of the second kind
				s.args[6], s.args[7] = block, ttl+benchKeep                                                        // what they have in common, as the kind
				group = append(group, s)
				continue
			}
			s.args = p.leaves(0)
			if holder := holders(hash); holder != "" && rng.IntN(4) > 0 {
				s.args[0], s.args[1] = holder, holder[len(holder)-len(p.field()):]
			}
			releases++
			group = append(group, s)
		}
	}
	return group, releases
}

// together makes the steps of a group by one script, and by their own those that it leaves.
func (b *bench) together(t *testing.T, group []step, releases int) (replies [][]any, left int) {
	t.Helper()
	var keys []string
	args := []any{releases}
	for i, s := range group {
		keys = append(keys, s.keys[0])
		if i == releases {
			args = append(args, s.args[0], s.args[6], s.args[7])
		}
		if s.script == "release" {
			args = append(args, s.args[0], s.args[1])
		} else {
			args = append(args, s.args[1], s.args[3], s.args[4], s.args[5])
		}
	}
	values := b.run(t, "usual", keys, args...)
	if len(values) != len(group) {
		t.Fatalf("%d calls are answered %v", len(group), values)
	}
	for i, s := range group {
		reply, is := values[i].([]any)
		switch {
		case values[i] == int64(0):
			reply = b.run(t, s.script, s.keys, s.args...)
			left++
		case !is:
			reply = []any{values[i]}
		}
		replies = append(replies, reply)
	}
	return replies, left
}

// spoil makes, now and then, the counter of a lock that nobody holds what a script cannot calculate with.
func spoil(n int, all ...*bench) {
	for _, b := range all {
		if n%20 == 0 && b.HGet("h4", "holder") == "" {
			b.HSet("h4", "token", "1-")
		}
	}
}

// TestCallsMadeTogetherAreAnsweredAsTheirOwnScriptsDo sends the same releases and requests to
// two servers: as one script on the first, and as one each on the other. Fails when that
// script answers, or leaves, another state than their own scripts do, when it does nothing
// for what is usual, and when one lock's error ends the others.
func TestCallsMadeTogetherAreAnsweredAsTheirOwnScriptsDo(t *testing.T) {
	many, one := newBench(t), newBench(t)
	_, _ = many.Push("h5", "the last lock's key is another's")
	_, _ = one.Push("h5", "the last lock's key is another's")
	rng := rand.New(rand.NewPCG(5, 6))
	now := time.UnixMicro(1_800_000_000_000_340)
	done, left := 0, 0
	for n := range 600 {
		now = now.Add(time.Duration(rng.IntN([]int{8, 400_000}[rng.IntN(4)/2])) * time.Microsecond)
		if rng.IntN(200) == 0 {
			now = now.Add(-time.Second) // as a server's clock may
		}
		many.SetTime(now)
		one.SetTime(now)
		spoil(n, many, one)
		group, releases := drawGroup(rng, now, n, func(hash string) string {
			if hash == "h5" {
				return ""
			}
			return one.HGet(hash, "holder")
		})
		if len(group) == 0 {
			continue
		}
		replies, own := many.together(t, group, releases)
		done, left = done+len(group)-own, left+own
		for i, s := range group {
			reply := one.run(t, s.script, s.keys, s.args...)
			if !slices.Equal(reply, replies[i]) {
				t.Fatalf("step %d, %v: %v together, %v by itself", n, s, replies[i], reply)
			}
		}
		if a, b := many.storedInAll(now.UnixMilli()), one.storedInAll(now.UnixMilli()); !maps.Equal(a, b) {
			t.Fatalf("step %d, %v: together they left\n%v, by themselves\n%v", n, group, a, b)
		}
	}
	if t.Log(done, left); done < 300 || left < 300 {
		t.Error("too few to say anything")
	}
}
