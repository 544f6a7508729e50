package check

import (
	"slices"
	"time"

	"github.com/relock-go/relock/test/torture/history"
)

// ticks judges the calls of Once of one name. A run's token is the instant of its grant by
// the clock of its server, in nanoseconds, and so tells the interval.
func (k *checker) ticks(s *story) {
	var runs []*call
	for _, c := range s.held() {
		if c.every != 0 {
			k.report.Ticks++
			runs = append(runs, c)
		}
	}
	ran, last := map[int64]*call{}, int64(0)
	for _, c := range runs {
		behind := c.token/us == last/us+1 // what is issued where the clock has stepped back
		if last = c.token; c.unspent || behind || s.steppedBack(c) {
			continue
		}
		interval := c.token / c.every
		if other := ran[interval]; other != nil && !s.forgotten(other, c) {
			k.violation(s, TickTwice, other.acquired, c.acquired, "%s ran in the interval %d of %v, in which %s had run", c, interval, time.Duration(c.every), other)
		}
		ran[interval] = c
	}
	var covers []reign
	for _, c := range s.calls {
		if c.every == 0 || c.why != "not acquired" {
			continue
		}
		k.report.Spent++
		if c.into == 0 {
			continue
		}
		if covers == nil {
			covers = k.coversOfAll(s, false)
		}
		k.missed(s, runs, covers, c)
	}
}

// steppedBack says that the server's clock may have been behind the last token, which another
// call may have been given that nobody knows of: it had been set back, and not caught up yet.
func (s *story) steppedBack(c *call) bool {
	return slices.ContainsFunc(s.faults, func(f *fault) bool {
		return f.kind == history.ClockBack && f.t <= c.acquired && c.acquired <= f.until+f.by
	})
}

// forgotten says that what told of a run may have been lost before another.
func (s *story) forgotten(before, after *call) bool {
	return slices.ContainsFunc(s.faults, func(f *fault) bool {
		return (f.losesData() || f.kind == history.ForceUnlock) && f.t <= after.acquired && f.limit(before.ttl) >= before.began
	})
}

// missed judges a call that found its interval spent: somebody ran in it, or went on with
// an earlier one. Around faults a process may have died with the run that it began.
func (k *checker) missed(s *story, runs []*call, covers []reign, c *call) {
	start := c.failed - c.into
	if slices.ContainsFunc(covers, func(r reign) bool { return r.from <= c.failed && r.to >= start-2*c.every }) {
		return
	}
	last, _ := slices.BinarySearchFunc(runs, c.failed, func(r *call, t int64) int { return compare(r.acquired, t) })
	for _, r := range runs[:min(last+1, len(runs))] { // the next may have been granted, and not have said so yet
		spent, goesOn := r.acquired >= start && !r.unspent, r.gone() >= c.began && r.acquired >= start-3*c.every
		if spent || goesOn {
			return
		}
	}
	k.violation(s, TickMissed, start, c.failed, "%s was told that the interval is spent, in which nobody had run for %v", c, time.Duration(c.into))
}
