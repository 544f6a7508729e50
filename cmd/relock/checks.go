//go:build unix

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// These types record what a scene has seen, and check what must be true of it. They know no processes, so a
// test can show that each check can fail.

// takeoverSlack is how much longer than the lease a takeover may take, in addition to the time for which the
// machine stalled.
const takeoverSlack = 250 * time.Millisecond

type counting struct {
	seen  []event // each increment: the value written, and the token under which
	want  int
	final int64
}

func (c counting) checks() []check {
	// The counter's values give the order of the increments.
	slices.SortFunc(c.seen, func(a, b event) int { return int(a.N - b.N) })
	values, tokens := len(c.seen) == c.want, true
	for i, e := range c.seen {
		values = values && e.N == int64(i+1)
		tokens = tokens && e.Token > 0 && (i == 0 || e.Token > c.seen[i-1].Token)
	}
	return []check{
		{"no increment is lost", values && c.final == int64(c.want), fmt.Sprintf("%d made, the counter says %d", len(c.seen), c.final)},
		{"tokens grow from holder to holder", tokens && values, fmt.Sprintf("%d grants in the order of the counter", len(c.seen))},
	}
}

type nesting struct {
	tokens  []int64 // of the workflow's holds
	counts  []int   // Info's, on the way in and out
	left    time.Time
	entered time.Time
	token   int64 // of the other process
}

func (n nesting) checks() []check {
	one := n.tokens[0]
	same := !slices.ContainsFunc(n.tokens, func(t int64) bool { return t != one })
	return []check{
		{"nested locks re-enter, and Info counts them", slices.Equal(n.counts, []int{1, 2, 3, 2, 1}), fmt.Sprint(n.counts)},
		{"nested locks share one grant's token", same && one > 0, fmt.Sprint(one)},
		{
			"the other process stays out until the last unlock", n.entered.After(n.left),
			fmt.Sprintf("%v after it", n.entered.Sub(n.left).Round(100*time.Microsecond)),
		},
		{"the other process has a larger token", n.token > one, fmt.Sprintf("by %d", n.token-one)},
	}
}

type takeover struct {
	before, after   int64 // tokens
	asked, answered time.Time
	lease           time.Duration // what was left of it between asked and answered
	entered         time.Time
	stalled         time.Duration // how much too long simple requests to Redis took in that time
}

func (t takeover) checks() []check {
	took := t.entered.Sub(t.asked).Round(time.Millisecond)
	saw := fmt.Sprintf("got the lock after %v, with %v of the lease left", took, t.lease)
	if t.stalled > 0 {
		saw += fmt.Sprintf(", and the machine stalled for %v", t.stalled.Round(time.Millisecond))
	}
	return []check{
		{
			"the dead holder's lease ends the wait", t.entered.Sub(t.answered) <= t.lease+takeoverSlack+t.stalled, saw,
		},
		// Redis counts in milliseconds.
		{"nobody gets the lock before that", t.entered.Sub(t.asked) >= t.lease-time.Millisecond, fmt.Sprintf("%v later", took)},
		{"the next token is larger", t.after > t.before, fmt.Sprintf("by %d", t.after-t.before)},
	}
}

type pausing struct {
	before, after  int64 // tokens
	entered, woken time.Time
	asked          event // the first process asks for its hold's state
	late           event // and writes
	stored         string
}

func (p pausing) checks() []check {
	return []check{
		{
			"another process gets the lock while the holder is stopped", p.after > p.before && p.entered.Before(p.woken),
			fmt.Sprintf("token larger by %d", p.after-p.before),
		},
		{"a woken holder learns of the loss at its first check", p.asked.Lost, p.asked.Detail},
		{
			"the late write of that holder is refused", p.late.Token == p.before && !p.late.OK && p.stored == "second",
			fmt.Sprintf("the store keeps %q", p.stored),
		},
	}
}

// A visit is one stay of a process in the lock, as the process reported it. in is after the grant, and out is
// before the release.
type visit struct {
	name    string
	token   int64
	in, out time.Time
}

type queueing struct {
	queued []string // who waited, in that order
	visits []visit
}

func (q queueing) checks() []check {
	// Redis gives out the tokens, one with each grant.
	slices.SortFunc(q.visits, func(a, b visit) int { return cmp.Compare(a.token, b.token) })
	var granted []string
	alone := len(q.visits) > 0
	for i, v := range q.visits {
		granted = append(granted, v.name)
		alone = alone && (i == 0 || !v.in.Before(q.visits[i-1].out))
	}
	return []check{
		{"a fair lock is granted in the order of the queue", slices.Equal(granted, q.queued), strings.Join(granted, ", ")},
		{"each process gets the lock after the one before it has left", alone, fmt.Sprintf("%d in turn", len(q.visits))},
	}
}

type shares struct {
	first, second visit // the readers
	writer, late  visit // the writer's ends with its downgrade; the late reader waits behind the writer
	lowered       int64 // the token of the writer's hold after the downgrade
	together      int   // readers, as Info says: the first two
	joined        int   // readers after the downgrade
	looks, mixed  int   // how often Info was read, and how often a writer was not alone
}

func (f shares) checks() []check {
	last := f.first.out
	if f.second.out.After(last) {
		last = f.second.out
	}
	passed := "the late reader got the lock after the writer's downgrade"
	fresh := !f.late.in.Before(f.writer.out)
	if !fresh {
		passed = "the late reader got the lock before the writer's downgrade"
	}
	tokens := []int64{f.first.token, f.second.token, f.writer.token, f.late.token}
	grow := f.first.token > 0
	for i := range tokens[1:] {
		grow = grow && tokens[i] < tokens[i+1]
	}
	return []check{
		{"readers share the lock", f.together == 2 && !f.second.in.After(f.first.out), fmt.Sprintf("%d at once", f.together)},
		{
			"a writer gets the lock after the last reader leaves", !f.writer.in.Before(last),
			fmt.Sprintf("%v after it", f.writer.in.Sub(last).Round(100*time.Microsecond)),
		},
		{"no new reader overtakes a waiting writer", fresh, passed},
		{"never a writer together with a reader", f.mixed == 0 && f.looks > 0, fmt.Sprintf("%d of %d looks at Redis saw that", f.mixed, f.looks)},
		{
			"a downgraded writer keeps reading, and a reader joins it", f.joined == 2 && f.lowered == f.writer.token,
			fmt.Sprintf("%d at once, under the same token", f.joined),
		},
		{"tokens of readers and writers grow alike", grow, strings.Trim(fmt.Sprint(tokens), "[]")},
	}
}
