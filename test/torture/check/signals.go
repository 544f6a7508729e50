package check

import (
	"cmp"
	"slices"
	"time"

	"github.com/relock-go/relock/test/torture/history"
)

// A signal is one that was given by who held the lock with that token.
type signal struct {
	from, to, token int64
	on, err         string
}

// An onto is something that happened to a condition. All of it happens under the lock,
// so that tokens say in which order: a hold is given up for a wait, a wait is over, a
// signal was answered.
type onto struct {
	token, at int64
	waits     *call
	back      bool // the wait is over
	signal    *signal
}

// signalled judges the conditions of a lock. A signal is owed to somebody if more wait on
// its condition than were signalled before, and can be had only by those who waited when it
// was given. Who comes back from a wait pays the oldest that it can have had; one that nobody
// pays for too long, without a fault, has been lost. A wait that is said to be over by its
// time, and leaves fewer behind than were signalled, owes what it was signalled.
func (k *checker) signalled(s *story) {
	conditions := map[string][]onto{}
	for _, c := range s.calls {
		if c.awaits == "" {
			continue
		}
		k.report.Awaits++
		back := c.acquired != 0 && (c.died == 0 || c.releasing != 0) // who died as it unlocked may have done so
		if c.failed != 0 || c.died != 0 && !back || c.parted.token == 0 {
			continue // it may have been signalled, or not
		}
		conditions[c.awaits] = append(conditions[c.awaits], onto{token: c.parted.token, at: c.began, waits: c})
		if back {
			conditions[c.awaits] = append(conditions[c.awaits], onto{token: c.token, at: c.acquired, waits: c, back: true})
		}
	}
	for i := range s.signals {
		if g := &s.signals[i]; g.err == "" {
			conditions[g.on] = append(conditions[g.on], onto{token: g.token, at: g.to, signal: g})
		}
	}
	if s.fell || len(conditions) == 0 {
		return
	}
	covers, deaf := k.coversOfAll(s, false), k.coversOfAll(s, true)
	for _, steps := range conditions {
		d := debts{checker: k, story: s, covers: covers, deaf: deaf, waiting: map[*call]int{}}
		slices.SortFunc(steps, func(a, b onto) int { return cmp.Or(compare(a.token, b.token), compare(a.at, b.at)) })
		for _, step := range steps {
			d.step(step)
		}
		d.late(k.until)
	}
}

// debts are what is owed to those who wait on one condition.
type debts struct {
	*checker
	*story
	covers  []reign
	deaf    []reign // and the times in which somebody does not hear
	steps   int
	waiting map[*call]int // since which step
	owed    []debt        // the oldest first
}

// A debt is a signal that nobody has paid for yet.
type debt struct {
	*signal
	at int // the step at which it was given
}

func (d *debts) step(o onto) {
	d.late(o.at)
	d.steps++
	switch {
	case o.signal != nil:
		n := 0
		for c := range d.waiting {
			if c.deadline > o.at { // else it may have left the condition by itself
				n++
			}
		}
		if n > 0 {
			d.report.Signals++
		}
		if len(d.owed) < n {
			d.owed = append(d.owed, debt{o.signal, d.steps})
		}
	case !o.back:
		d.waiting[o.waits] = d.steps
	default:
		since := d.waiting[o.waits]
		delete(d.waiting, o.waits)
		if o.waits.unwoken {
			d.leaves(o)
		} else if i := slices.IndexFunc(d.owed, func(g debt) bool { return g.at > since }); i >= 0 {
			d.owed = slices.Delete(d.owed, i, i+1)
		}
	}
}

// leaves is for a wait that is said to have ended without a signal: those who are left cannot
// pay for more signals than they are, nor for what was given before they waited.
func (d *debts) leaves(o onto) {
	for i, g := range d.owed {
		can := 0
		for _, since := range d.waiting {
			if since < g.at {
				can++
			}
		}
		if can > i {
			continue
		}
		d.owed = slices.Delete(d.owed, i, i+1)
		if !d.touches(g.from, o.at) {
			d.violation(d.story, LostSignal, g.from, o.at, "%s was told that its time has passed, but %q had been signalled for it", o.waits, g.on)
		}
		return
	}
}

func (d *debts) touches(from, to int64) bool {
	return slices.ContainsFunc(d.covers, func(r reign) bool { return r.from <= to && r.to >= from })
}

// late looks whether the oldest signal is owed for too long. Who does not hear has the lock
// only where that is free as it asks, and so for long not where others always want it.
func (d *debts) late(now int64) {
	bound := int64(d.ttl/3 + d.opts.WakeSlack)
	for len(d.owed) > 0 {
		g := d.owed[0]
		from, to := uncovered(g.to, now, d.deaf)
		if to-from <= bound {
			return
		}
		d.violation(d.story, LostSignal, g.to, to, "%q was signalled with token %d, and nobody of %d came back for %v; the bound is %v",
			g.on, g.token, len(d.waiting), time.Duration(to-from), time.Duration(bound))
		d.owed = d.owed[1:]
	}
}

// coversOfAll are the times for which faults answer that befell anybody who uses the lock;
// deaf: those as well in which messages do not pass, and commands do.
func (k *checker) coversOfAll(s *story, deaf bool) []reign {
	ttl := int64(s.ttl)
	all := slices.Clone(k.covers(s))
	seen := map[int]bool{}
	for _, c := range s.calls {
		if seen[c.worker] {
			continue
		}
		seen[c.worker] = true
		for _, f := range k.byWorker[c.worker] {
			if deaf || f.kind != history.NoSubscribe {
				all = append(all, reign{from: f.t, to: f.until + 2*ttl})
			}
		}
		if t := k.died[c.worker]; t != 0 {
			all = append(all, reign{from: t, to: t + 2*ttl})
		}
	}
	return join(all)
}

// items judges the buffer that a lock protects, in the order in which the store decided:
// each item is put once, and taken once, by whom it names.
func (k *checker) items(s *story) {
	there, known := map[int64]bool{}, map[int64]bool{}
	for _, e := range s.effects {
		if e.err != "" {
			continue
		}
		switch e.does {
		case "put":
			if known[e.item] || int64(len(there)) >= e.of {
				k.violation(s, BufferBroken, e.t, e.t, "worker %d put item %d into a buffer of %d, with %d in it", e.worker, e.item, e.of, len(there))
			}
			there[e.item], known[e.item] = true, true
		case "take":
			k.report.Items++
			if !there[e.item] {
				k.violation(s, BufferBroken, e.t, e.t, "worker %d took item %d, which was not there any more", e.worker, e.item)
			}
			delete(there, e.item)
		}
	}
}
