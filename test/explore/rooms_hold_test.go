package explore_test

import (
	"fmt"
	"time"

	"github.com/relock-go/relock/internal/ledger"
	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/wire"
)

// A roomHold is a hold that a call has taken.
type roomHold struct {
	room.Hold
	c      *roomCall
	joined bool // of a session that had a hold already
	write  bool // when it was made
}

func (c *roomCall) newHold() *roomHold {
	x := &roomHold{c: c, write: !c.want.Read}
	x.Hold.Of, x.Hold.Terms, x.Hold.Read = x, c.want.Terms, c.want.Read
	return x
}

// took is the end of a call that has its hold.
func (c *roomCall) took(x *roomHold) {
	c.end()
	c.m.hall.tell("%s holds by %s, token %d, until %v", c.m.id, x.acq().nonce, x.Token, x.Until().Sub(c.m.hall.start))
	c.m.hall.took(x)
}

func (x *roomHold) acq() *roomAcq { return x.Session.Of.(*roomAcq) }

// unlock ends the hold by its holder.
func (x *roomHold) unlock() {
	a, m := x.acq(), x.c.m
	at := m.step()
	ending := x.End(at)
	m.hall.tell("%s unlocks token %d: %d", m.id, x.Token, ending)
	m.done(at)
	switch ending {
	case room.Fewer:
		a.tell(nil, nil)
	case room.Last:
		a.release()
	case room.Silent:
		m.hall.seen["unlocks without a command"]++
	case room.WasLost:
	}
}

// A teller is somebody who has Redis told what a session needs.
type teller struct {
	wish *ledger.Wish
	then func(known bool) // nil: nobody waits for that
	by   time.Duration
}

// tell has Redis told, one statement at a time.
func (a *roomAcq) tell(w *ledger.Wish, then func(known bool)) {
	a.tellers = append(a.tellers, &teller{w, then, a.m.hall.now + a.Lasts() + room.LateAfter})
	a.state()
}

func (t *teller) done(known bool) {
	if t.then != nil {
		t.then(known)
	}
}

// state makes the next statement, unless one is under way.
func (a *roomAcq) state() {
	for !a.turn && len(a.tellers) > 0 {
		t := a.tellers[0]
		a.tellers = a.tellers[1:]
		at := a.m.step()
		st, last, over := a.Session.Next(t.wish, at)
		a.turn = st != nil
		a.m.done(at)
		switch {
		case st != nil:
			a.say(t, st)
		case last:
			a.release()
			t.done(true)
		default:
			t.done(!over)
		}
	}
}

func (a *roomAcq) say(t *teller, st *room.Statement) {
	what := fmt.Sprintf("states %s op %d: %d writes, %d reads", a.nonce, st.Said.Op, st.Said.Writes, st.Said.Reads)
	a.m.ask(what, a.statement(st), func(reply []any, ok bool) {
		if !ok {
			a.turn = false
			if t.by < a.m.hall.now {
				t.done(false)
				a.state()
				return
			}
			a.m.hall.later(a.m, 20*time.Millisecond, func() {
				a.tellers = append(a.tellers, t)
				a.state()
			})
			a.state()
			return
		}
		at := a.m.step()
		v := st.Stated(a.m.said(st, reply), 0, at)
		if v == room.Known || v == room.Short {
			st.Answered(v == room.Known)
		}
		a.turn = false
		a.m.done(at)
		switch v {
		case room.Again:
			a.tellers = append([]*teller{t}, a.tellers...)
		default:
			t.done(v == room.Known)
		}
		a.state()
	})
}

// statement is a statement as the script is told of it.
func (a *roomAcq) statement(st *room.Statement) func() []any {
	h, said, lease := a.m.hall, st.Said, st.Lease.Milliseconds()
	if said.Opens {
		return func() []any {
			return h.lock.downgrade(a.m.id, a.nonce, a.owner, said.Op, int64(said.Reads), lease)
		}
	}
	return func() []any {
		return h.lock.hold(a.m.id, a.nonce, a.owner, said.Op, int64(said.Writes), int64(said.Reads), lease, st.Several)
	}
}

func (m *member) said(st *room.Statement, reply []any) room.Reply {
	decode := wire.DecodeHold
	if st.Said.Opens {
		decode = wire.DecodeDowngrade
	}
	got, err := decode(reply)
	if err != nil {
		m.hall.violate("a reply cannot be read: %v", err)
	}
	return got
}

// release has Redis hear that the acquisition is over, until it has.
func (a *roomAcq) release() {
	m := a.m
	ending := []*roomAcq{a}
	for _, with := range a.Session.Served() {
		ending = append(ending, with.Of.(*roomAcq))
	}
	a.releaseUntil(ending, m.hall.now+a.Lasts()+room.LateAfter)
}

// releaseUntil ends the acquisition and those who were served by its grant.
func (a *roomAcq) releaseUntil(ending []*roomAcq, by time.Duration) {
	m := a.m
	var notes []releasedAcq
	var served []string
	for i, x := range ending {
		notes = append(notes, releasedAcq{x.nonce, x.owner, x.Doubt(), false})
		if i > 0 {
			served = append(served, x.nonce)
		}
	}
	m.ask(fmt.Sprint("releases ", a.nonce, served), m.releases(notes[0], served...), func(_ []any, ok bool) {
		if !ok && m.hall.now < by {
			m.hall.later(m, 20*time.Millisecond, func() { a.releaseUntil(ending, by) })
			return
		}
		for i, x := range ending {
			m.forget(x)
			notes[i].ended = ok
			m.released = append(m.released, notes[i])
		}
	})
}

func (m *member) releases(note releasedAcq, served ...string) func() []any {
	h := m.hall
	return func() []any {
		return h.lock.release(m.id, note.nonce, note.owner, note.doubt, true, false, served...)
	}
}

// disown releases what Redis has granted and nobody here has.
func (m *member) disown(nonce string) {
	if m.find(nonce) != nil {
		return
	}
	for _, note := range m.released {
		if note.nonce == nonce {
			m.ask("disowns "+nonce, m.releases(note), func([]any, bool) {})
			return
		}
	}
}

// reenter adds a hold to a session of the call's owner.
func (c *roomCall) reenter(s *room.Session, reserved bool) {
	m, a := c.m, s.Of.(*roomAcq)
	at := m.step()
	x, in := s.Reenter(c.want.Terms, c.want.Read, reserved, at)
	if in == room.Open {
		hold := c.newHold()
		hold.joined = true
		s.Hold(&hold.Hold, at)
		c.took(hold)
	}
	if reserved && x == nil {
		s.Entered(at)
	}
	m.done(at)
	switch {
	case x != nil:
		c.wait(s, a, x, reserved)
	case in != room.Open:
		c.anew()
	}
}

// join adds a hold of which Redis is not told.
func (c *roomCall) join(s *room.Session, at *room.Step) {
	hold := c.newHold()
	hold.joined = true
	s.Join(&hold.Hold, at)
	c.m.hall.seen["holds that Redis is not told of"]++
	c.took(hold)
	c.m.done(at)
}

// wait has Redis told of one more hold.
func (c *roomCall) wait(s *room.Session, a *roomAcq, x *ledger.Wish, reserved bool) {
	m := c.m
	a.tell(x, func(known bool) {
		at := m.step()
		if s.Admit(x, reserved, known && !c.gone, at) {
			hold := c.newHold()
			hold.joined = true
			s.Hold(&hold.Hold, at)
			c.took(hold)
			m.done(at)
			return
		}
		m.done(at)
		if !c.ended {
			c.anew()
		}
	})
}
