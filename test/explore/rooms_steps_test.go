package explore_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/trust"
)

// roomSteps are what a step may be, by how often.
var roomSteps = []struct {
	often int
	risky bool
	what  string
	do    func(h *hall, m *member)
}{
	{14, false, "a call", (*hall).call},
	{8, false, "an unlock", (*hall).unlock},
	{5, false, "a cancelled call", (*hall).cancel},
	{40, false, "an arrival", func(h *hall, _ *member) { h.arrive() }},
	{14, false, "time", func(h *hall, _ *member) { h.wait() }},
	{4, true, "a loss on the way", func(h *hall, _ *member) { h.lose() }},
	{3, true, "a copy", func(h *hall, _ *member) { h.repeat() }},
	{2, true, "a client that stands still", func(h *hall, m *member) { m.still = h.now + h.setup.ttl*time.Duration(1+h.dice.IntN(12))/8 }},
	{1, true, "a crash", (*hall).crash},
	{1, false, "a close", (*hall).close},
}

// step is one step that the dice have chosen.
func (h *hall) step() {
	m := h.members[h.dice.IntN(len(h.members))]
	n := h.dice.IntN(92)
	for _, s := range roomSteps {
		if n -= s.often; n < 0 {
			if !s.risky || h.setup.risky {
				h.seen[s.what]++
				s.do(h, m)
			}
			return
		}
	}
}

func (h *hall) call(m *member) {
	open := 0
	for _, c := range m.calls {
		if !c.ended {
			open++
		}
	}
	if m.dead || open > 3 {
		return
	}
	if h.setup.sticky && h.dice.IntN(8) > 0 && (m != h.members[0] || open > 0 || h.heldBy(m)) {
		h.unlock(m) // a lock that somebody waits for is never kept
		return
	}
	c := &roomCall{m: m, began: h.now, want: room.Want{Once: h.dice.IntN(6) == 0, Terms: h.terms()}}
	if h.dice.IntN(3) == 0 {
		c.want.Owner = fmt.Sprintf("owner %d", h.dice.IntN(2))
		if h.dice.IntN(3) == 0 {
			c.want.Terms = &localTerms
		}
	}
	h.drawOwner(&c.want)
	c.want.Read, c.want.Unlock = h.setup.kind == "rw" && h.dice.IntN(2) == 0, h.dice.IntN(4) > 0
	if c.handle = &m.handles[h.dice.IntN(2)]; c.want.Read {
		c.handle = &m.handles[2+h.dice.IntN(2)]
	}
	if i := slices.Index(familyOfRooms, c.want.Owner); h.setup.family && i >= 0 && h.dice.IntN(8) > 0 {
		if c.handle = &m.handles[4+2*i]; c.want.Read {
			c.handle = &m.handles[5+2*i]
		}
	}
	m.calls = append(m.calls, c)
	h.tell("%s calls: %+v", m.id, c.want)
	c.begin()
}

var (
	usualTerms = room.Terms{TTL: time.Second}
	fixedTerms = room.Terms{TTL: time.Second, Fixed: true}
	longTerms  = room.Terms{TTL: 2 * time.Second}
	localTerms = room.Terms{TTL: time.Second, Local: true}
	keptTerms  = room.Terms{TTL: time.Second, Sticky: 300 * time.Millisecond}
)

func (h *hall) terms() *room.Terms {
	switch h.dice.IntN(8) {
	case 0:
		return &fixedTerms
	case 1:
		return &longTerms
	}
	if h.setup.sticky {
		return &keptTerms
	}
	return &usualTerms
}

// heldBy reports whether a client has a hold.
func (h *hall) heldBy(m *member) bool {
	return slices.ContainsFunc(h.holds, func(x *roomHold) bool { return !x.Released && x.c.m == m })
}

func (h *hall) unlock(m *member) {
	var all []*roomHold
	for _, x := range h.holds {
		if x.owes && x.c.m == m && !m.dead && m.still <= h.now {
			all = append(all, x)
		}
	}
	if len(all) > 0 {
		all[h.dice.IntN(len(all))].unlock()
	}
}

func (h *hall) cancel(m *member) {
	for _, c := range m.calls {
		if !c.ended && !c.gone && !m.dead && m.still <= h.now {
			h.tell("%s leaves", m.id)
			c.leave()
			return
		}
	}
}

func (h *hall) arrive() {
	if len(h.air) == 0 && h.setup.sticky && h.dice.IntN(2) == 0 {
		h.call(h.members[0]) // before the time of a kept grant is over
		return
	}
	if len(h.air) == 0 {
		h.pass()
		return
	}
	h.now += time.Duration(h.dice.IntN(300)) * time.Microsecond
	h.land(h.dice.IntN(len(h.air)))
}

// wait lets time pass, without any fault only while nothing is under way.
func (h *hall) wait() {
	if h.setup.risky || len(h.air) == 0 {
		h.pass()
		return
	}
	h.arrive()
}

func (h *hall) lose() {
	if len(h.air) > 0 {
		i := h.dice.IntN(len(h.air))
		h.tell("lost: %s", h.air[i].what)
		h.air = slices.Delete(h.air, i, i+1)
	}
}

func (h *hall) repeat() {
	if len(h.air) > 0 {
		if f := h.air[h.dice.IntN(len(h.air))]; f.copy {
			h.copied[f.nonce] = true
			again := *f
			h.fly(&again)
		}
	}
}

func (h *hall) crash(m *member) {
	if h.dice.IntN(3) == 0 {
		h.tell("%s crashes", m.id)
		m.dead = true
		h.lock.deaf[m.id] = true
	}
}

// close ends a client in order: what it holds is lost, and who waits goes.
func (h *hall) close(m *member) {
	if m.dead || m.still > h.now || h.dice.IntN(3) > 0 {
		return
	}
	h.tell("%s closes", m.id)
	m.closing = true
	for _, a := range slices.Clone(m.known) {
		if at := m.step(); a.Held() {
			a.Session.Close(errLost, at)
			m.done(at)
		}
	}
	for _, c := range m.calls {
		if !c.ended && !c.gone {
			c.leave()
		}
	}
}

// leave ends the call's wait: its context has ended.
func (c *roomCall) leave() {
	m := c.m
	c.gone = true
	at := m.step()
	switch {
	case c.putting, c.blocked:
		m.done(at)
		if c.blocked {
			c.end()
		}
	case c.follower != nil:
		m.room.Leave(c.follower, at)
		m.done(at)
		c.end()
	case c.asking != nil && !c.asking.over:
		c.request.Unanswered(room.Failure{Err: errLost, Unknown: true, Left: true}, false)
		m.done(at)
		c.giveUp()
	default:
		m.done(at)
		c.giveUp()
	}
}

// ask sends a script and waits for its answer, for as long as one is waited for.
func (m *member) ask(what string, script func() []any, then func(reply []any, ok bool)) *question {
	return m.askFor("", what, script, then)
}

// askFor is ask of a request for the lock, by that nonce.
func (m *member) askFor(nonce, what string, script func() []any, then func(reply []any, ok bool)) *question {
	h, q := m.hall, &question{}
	what = m.id + " " + what
	h.fly(&roomFlight{what: what, copy: true, nonce: nonce, run: func() {
		reply := h.serve(script)
		h.fly(&roomFlight{to: m, what: "answer to " + what, run: func() {
			if !q.over {
				q.over = true
				then(reply, true)
			}
		}})
	}})
	h.later(m, trust.Attempt(h.setup.ttl), func() {
		if !q.over {
			q.over = true
			h.seen["requests without an answer"]++
			then(nil, false)
		}
	})
	return q
}
