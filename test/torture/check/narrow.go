package check

import (
	"cmp"
	"slices"
)

// A family is all holds with one token: a grant.
type family struct {
	token     int64
	ops       []*ops // of its holds
	exclusive bool   // its holds exclude all other families', from the first to the last
	hidden    bool   // a call that we see no hold of may have founded it, so that its takes may come after later grants
	began     int64  // its first take is not before
	acquired  int64  // nor after
}

// ops is what one hold did: a take or blip, a downgrade, an end.
type ops struct {
	take, down, end *op
}

// ops are the operations of a story's holds, in the order of their beginnings,
// with their times narrowed.
func (s *story) ops() []op {
	all, fs := s.grants()
	if s.partedUnseen(fs) {
		all, fs = s.grants()
	}
	s.fromBelow(fs)
	fromAbove(fs)
	slices.SortFunc(all, func(a, b op) int { return cmp.Or(compare(a.from, b.from), compare(a.to, b.to)) })
	return all
}

// grants are the operations of the holds that have one order, also by grant.
func (s *story) grants() ([]op, []*family) {
	var all []op
	for _, c := range s.calls {
		if c.acquired != 0 && !c.unknown && !s.parted[c.token] {
			all = append(all, s.hold(c)...)
		}
	}
	return all, s.families(all)
}

// hold is what one hold did.
func (s *story) hold(c *call) []op {
	if !c.certain() {
		return []op{{deed: blip, c: c, from: c.began, to: c.acquired}}
	}
	done := []op{{deed: take, c: c, from: c.began, to: c.acquired}}
	last := c.end()
	if c.downgraded > c.acquired && c.downgraded < last {
		done = append(done, op{deed: downgrade, c: c, from: c.downgraded, to: c.downgraded})
	}
	e := op{deed: end, c: c, from: last, to: last}
	if c.confirmed && last == c.releasing {
		e.to = c.released
	}
	return append(done, e)
}

// families brings the operations together by token, in its order.
func (s *story) families(all []op) []*family {
	byToken := map[int64]*family{}
	holds := map[*call]*ops{}
	var fs []*family
	for i := range all {
		o := &all[i]
		if o.deed == take || o.deed == blip {
			f := byToken[o.c.token]
			if f == nil {
				f = &family{token: o.c.token, exclusive: true, began: never, acquired: never}
				byToken[f.token], fs = f, append(fs, f)
			}
			holds[o.c] = f.add(o)
			continue
		}
		h := holds[o.c]
		if o.deed == downgrade {
			h.down = o
			f := byToken[o.c.token]
			f.exclusive = false
			continue
		}
		h.end = o
	}
	for _, f := range fs {
		s.rejoin(f)
	}
	slices.SortFunc(fs, func(a, b *family) int { return compare(a.token, b.token) })
	follows := int64(0)
	for _, f := range fs {
		for _, h := range f.ops {
			h.take.follows = follows
		}
		if !f.hidden {
			follows = f.token
		}
	}
	return fs
}

// add notes that a hold of the grant was taken.
func (f *family) add(taken *op) *ops {
	h := &ops{take: taken}
	f.ops = append(f.ops, h)
	f.began, f.acquired = min(f.began, taken.c.began), min(f.acquired, taken.c.acquired)
	f.exclusive = f.exclusive && !taken.c.read
	return h
}

// rejoin marks the takes that may join a grant of which we see no hold: one that
// has lapsed for us and not in Redis yet, one that a failover brought back, or a
// ghost's.
func (s *story) rejoin(f *family) {
	for _, h := range f.ops {
		c := h.take.c
		if c.owner == "" {
			continue
		}
		ghost := s.haunted(c, c.began, c.acquired)
		f.hidden = f.hidden || ghost && !f.exclusive
		h.take.rejoins = ghost
		for _, g := range f.ops {
			d := g.take.c
			if c == d || !c.sameOwner(d) || d.began > c.acquired || d.end() > c.acquired {
				continue
			}
			back := d.confirmed && d.released < c.began && s.cameBack(d.released, c)
			f.hidden = f.hidden || back
			h.take.rejoins = h.take.rejoins || back || !d.confirmed || d.ticket() // which lasts longer there than we know
		}
	}
}

// fromBelow and fromAbove take from the operations' times what no legal order
// can use, since tokens grow from grant to grant: a grant comes after all that
// have smaller tokens, and after the ends of those that it excludes. Without it,
// calls that wait for one lock together would leave no instant to cut a history
// at. An operation to which this leaves no time keeps the time it had: porcupine
// is to find that it is illegal.
func (s *story) fromBelow(fs []*family) {
	began, ended, wrote := int64(0), int64(0), int64(0) // of families before: latest first take, end, and end of writing
	later := laterGrants(fs)
	for i, f := range fs {
		for _, h := range f.ops {
			after := max(began, ended)
			if h.take.c.read {
				after = max(began, wrote)
			}
			if after <= h.take.to {
				h.take.from = max(h.take.from, after)
			}
			s.mayEndEarly(h, later[i])
		}
		if f.hidden {
			continue
		}
		began = max(began, f.began)
		if !f.exclusive && len(f.ops) > 1 {
			continue
		}
		for _, h := range f.ops {
			if h.end == nil {
				continue
			}
			ended = max(ended, h.end.from)
			if h.down != nil {
				wrote = max(wrote, min(h.down.from, h.end.from))
			} else if !h.take.c.read {
				wrote = max(wrote, h.end.from)
			}
		}
	}
}

// mayEndEarly gives the end of a hold the time from a fault on that allows two
// holders: if it met another hold, if nobody has confirmed that Redis had it
// to its end, or if a later grant was made before. The last is how a grant
// looks that was on its way when the fault came, and was passed on within its
// process. The call's answer may have come after the fault, and its grant too:
// a place in the queue passes on the rest of a lease from before.
func (s *story) mayEndEarly(h *ops, l later) {
	c := h.take.c
	if h.end == nil || c.confirmed && !c.met && !l.contradicts(c) {
		return
	}
	for _, f := range s.faults {
		if f.tookFrom(c) {
			h.end.from = min(h.end.from, max(f.t, h.take.from))
		}
	}
}

// A later is when the first grant with a larger token must have been made.
type later struct{ any, write int64 }

func laterGrants(fs []*family) []later {
	all, first := make([]later, len(fs)), later{never, never}
	for i, f := range slices.Backward(fs) {
		all[i] = first
		if !f.hidden {
			first.any = min(first.any, f.acquired)
		}
		for _, h := range f.ops {
			if !h.take.c.read { // it came before all that have larger tokens
				first.write = min(first.write, first.any, h.take.c.acquired)
			}
		}
	}
	return all
}

// contradicts says that a later grant was made while the hold, which excludes it,
// had not ended.
func (l later) contradicts(c *call) bool {
	wrote := c.end()
	switch {
	case c.read:
		wrote = 0
	case c.downgraded != 0:
		wrote = min(wrote, c.downgraded)
	}
	return l.any < wrote || l.write < c.end()
}

// fromAbove is the other direction.
func fromAbove(fs []*family) {
	next, nextWrite := int64(never), int64(never) // of families after: earliest return of a take, and of one that writes
	for _, f := range slices.Backward(fs) {
		if f.hidden {
			continue
		}
		if f.exclusive || len(f.ops) == 1 {
			for _, h := range f.ops {
				h.before(next, nextWrite)
			}
		}
		next = min(next, f.acquired)
		if f.exclusive || len(f.ops) == 1 && !f.ops[0].take.c.read {
			nextWrite = min(nextWrite, f.acquired)
		}
	}
}

// before moves the ends of a hold's operations to where the next grants need them.
func (h *ops) before(next, nextWrite int64) {
	if next >= h.take.from {
		h.take.to = min(h.take.to, next)
	}
	if h.end == nil {
		return
	}
	if !h.take.c.read && h.down == nil {
		nextWrite = next
	}
	if nextWrite >= h.end.from {
		h.end.to = min(h.end.to, nextWrite)
	}
}
