package check

import (
	"slices"
	"time"

	"github.com/relock-go/relock/test/torture/history"
)

// us is by how much tokens of one owner follow each other at least: Redis counts the instant
// of a grant in microseconds.
const us = int64(time.Microsecond)

// slack is what clocks that are read one after the other may differ by.
const slack = int64(time.Second)

// tokens checks that they grow from grant to grant, and that the holds of one
// owner's grant share one.
func (k *checker) tokens(s *story) {
	held := s.held()
	for _, c := range held {
		if c.token <= 0 {
			k.violation(s, Malformed, c.acquired, c.acquired, "%s has token %d", c, c.token)
		}
	}
	byCall := slices.Clone(held)
	slices.SortFunc(byCall, func(a, b *call) int { return compare(a.began, b.began) })
	s.passing(held)
	k.unwaited(s, held)
	k.repeated(s, byCall)
	k.growing(s, held, byCall)
	k.ordered(s, held)
	k.shared(s, held, byCall)
}

// repeated finds a token that two grants have: only holds of one named owner
// may share it, and only while some of them may be left in Redis. That may also
// be one whose answer came late: it goes by when the calls began.
func (k *checker) repeated(s *story, byCall []*call) {
	type use struct {
		c    *call
		gone int64 // when the last hold of the grant was gone
		back int64 // when it was gone before a failover brought it back; until its lease is over, others may join it
	}
	uses := make(map[int64]*use, len(byCall))
	for _, c := range byCall {
		u := uses[c.token]
		switch {
		case u == nil:
			uses[c.token] = &use{c: c, gone: c.gone()}
			continue
		case s.parted[c.token] && c.parted == u.c:
		case !c.sameOwner(u.c):
			k.violation(s, TokenRepeated, u.c.acquired, c.acquired, "%s and %s have the same token", u.c, c)
		case u.gone >= c.began || s.haunted(c, u.gone, c.began):
		case s.cameBack(u.gone, c):
			u.back = u.gone
		case u.back == 0 || !s.cameBack(u.back, c):
			k.violation(s, TokenRepeated, u.c.acquired, c.acquired, "%s has the token of %s, whose grant had ended", c, u.c)
		}
		u.gone = max(u.gone, c.gone())
	}
}

// growing checks the order that calls prove: one had returned before the other began.
func (k *checker) growing(s *story, held, byCall []*call) {
	s.passedUnseen(held)
	js := s.joiners(held)
	var newest *call
	i := 0
	for _, c := range byCall {
		for ; i < len(held) && held[i].acquired < c.began; i++ {
			if newest == nil || held[i].token > newest.token {
				newest = held[i]
			}
		}
		switch {
		case newest == nil || c.token >= newest.token || js.joined(c, newest):
		case s.passedOn(c, newest):
			c.unknown = true
		default:
			k.fell(s, newest, c)
		}
	}
	for _, c := range held {
		if c.unknown {
			k.report.PassedOn++
		}
	}
}

// passedUnseen finds holds that were passed on in a process that did not know of its loss, though
// no call proves it: the call was under way when the later grant was made.
func (s *story) passedUnseen(held []*call) {
	var newest *call // of those that returned before
	for _, c := range held {
		if newest != nil && c.unnamed() && c.token < newest.token && !c.sameOwner(newest) && s.passedOn(c, newest) {
			c.unknown = true
		}
		if newest == nil || c.token > newest.token {
			newest = c
		}
	}
}

// joiners know which holds may have joined an older grant of their owner:
// readers of two owners have two grants at once.
type joiners struct {
	*story
	family map[int64][]*call // named owners' holds, by token
}

func (s *story) joiners(held []*call) joiners {
	js := joiners{s, map[int64][]*call{}}
	for _, c := range held {
		if c.owner != "" {
			js.family[c.token] = append(js.family[c.token], c)
		}
	}
	return js
}

// joined says that a hold may have joined a grant from before another hold:
// repeated has looked whether that was left.
func (js joiners) joined(c, than *call) bool {
	if c.owner == "" {
		return false
	}
	return js.haunted(c, c.began, than.acquired) || slices.ContainsFunc(js.family[c.token], func(d *call) bool {
		return d != c && d.sameOwner(c) && d.began <= than.acquired
	})
}

// ordered checks the order that holding proves, also among calls that waited
// together: the certain times of two holds that exclude each other do not meet,
// so the one that held first was granted first.
func (k *checker) ordered(s *story, held []*call) {
	spans := s.spans()
	ends := slices.Clone(spans)
	slices.SortFunc(ends, func(a, b span) int { return compare(a.to, b.to) })
	js := s.joiners(held)
	var newest, newestWrite *call
	i := 0
	for _, b := range spans {
		for ; i < len(ends) && ends[i].to <= b.from; i++ {
			c := ends[i].c
			if newest == nil || c.token > newest.token {
				newest = c
			}
			if !c.read && (newestWrite == nil || c.token > newestWrite.token) {
				newestWrite = c
			}
		}
		before := newest
		if b.c.read {
			before = newestWrite
		}
		if before == nil || before == b.c || b.c.token >= before.token || before.sameOwner(b.c) {
			continue
		}
		if !js.joined(b.c, before) && !s.struck(b.c.began, b.from) {
			k.fell(s, before, b.c)
		}
	}
}

// struck says that a fault which allows two holders befell the lock in between.
func (s *story) struck(from, to int64) bool {
	return slices.ContainsFunc(s.faults, func(f *fault) bool {
		return f.allowsOverlap() && f.t <= to && f.limit(s.ttl) >= from
	})
}

// fell reports a token that is smaller than an earlier one, unless it may be.
func (k *checker) fell(s *story, before, after *call) {
	if s.mayFall(before, after) {
		k.report.TokensFell++
		s.fell = true
		return
	}
	k.violation(s, TokenFell, before.acquired, after.acquired, "%s came after %s", after, before)
}

// fellUnseen looks for tokens that fell where no call proves it, as one was under way for long:
// the larger token's hold had ended when the call returned with the smaller.
func (s *story) fellUnseen() bool {
	held := s.held()
	byEnd := slices.Clone(held)
	slices.SortFunc(byEnd, func(a, b *call) int { return compare(a.end(), b.end()) })
	var all, writes *call // of those that have ended, the one with the largest token
	i := 0
	for _, c := range held {
		for ; i < len(byEnd) && byEnd[i].end() < c.acquired; i++ {
			d := byEnd[i]
			if all == nil || d.token > all.token {
				all = d
			}
			if !d.read && (writes == nil || d.token > writes.token) {
				writes = d
			}
		}
		before := all
		if c.read {
			before = writes
		}
		if before != nil && c.certain() && c.token < before.token && !c.sameOwner(before) && !s.passedOn(c, before) && s.mayFall(before, c) {
			return true
		}
	}
	return false
}

// reach is how old a token may be when it is granted: a block of a lock that its client may keep ends at the
// server's clock, and begins after the last token of that server.
const reach = 10_000 * us

// mayFall reports whether the token could fall: the counter was lost while the server's clock was behind, by no more
// than that, or two primaries served, and the token of one was from the past.
func (s *story) mayFall(before, after *call) bool {
	lost, two, behind := false, false, int64(0)
	for _, f := range s.faults {
		if f.losesData() && f.t <= after.acquired && f.until >= before.since {
			lost = true
			two = two || f.kind == history.Failover
		}
		if (f.kind == history.ClockForward || f.kind == history.ClockBack) && f.t <= after.acquired {
			behind = max(behind, f.by)
		}
	}
	by := before.token - after.token
	return lost && behind > 0 && by <= behind+slack || two && after.unnamed() && by <= reach
}

// shared checks re-entries: while one hold of an owner was certainly valid all
// through a call of the same owner, the two have one token.
func (k *checker) shared(s *story, held, byCall []*call) {
	latest := map[string]*call{} // the certain hold of each owner that ends last
	i := 0
	for _, c := range byCall {
		for ; i < len(held) && held[i].acquired <= c.began; i++ {
			d := held[i]
			if d.owner == "" || !d.certain() {
				continue
			}
			if l := latest[d.owner]; l == nil || d.end() > l.end() {
				latest[d.owner] = d
			}
		}
		d := latest[c.owner]
		if c.owner == "" || d == nil || d.end() <= c.acquired {
			continue
		}
		k.report.Reentries++
		if d.token != c.token && !s.struck(d.began, c.acquired) {
			k.violation(s, ReentryToken, d.acquired, c.acquired, "%s re-entered %s with another token", c, d)
		}
	}
}
