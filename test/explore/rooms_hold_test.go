package explore_test

import (
	"fmt"
	"slices"
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
	owes   bool // its caller has not unlocked
	write  bool // when it was made
}

func (c *roomCall) newHold() *roomHold {
	x := &roomHold{c: c, write: !c.want.Read}
	x.Hold.Of, x.Hold.Handle, x.Hold.Terms, x.Hold.Read, x.Hold.Unlock = x, c.handle, c.want.Terms, c.want.Read, c.want.Unlock
	return x
}

// took says that a call has its hold. It puts it on its handle in another step.
func (c *roomCall) took(x *roomHold) {
	m := c.m
	m.hall.tell("%s holds by %s, token %d, until %v", m.id, x.acq().nonce, x.Token, x.Until().Sub(m.hall.start))
	m.hall.took(x)
	c.putting = true
	m.hall.later(m, time.Duration(m.hall.dice.IntN(8)/7)*time.Millisecond, func() { c.put(x) })
}

// put is the end of a call, unless something is in the way of its hold.
func (c *roomCall) put(x *roomHold) {
	m := c.m
	at := m.look()
	bar := room.Unheld
	if !c.gone {
		bar, _ = x.Put(c.want, at)
	}
	if c.putting = false; bar == room.NoBar {
		for _, o := range m.hall.holds {
			if o.owes && o.Lost && !o.Released && !o.Read && o.c.m == m && c.want.Owner != "" && slices.Contains(room.Lineage(c.want.Owner), o.c.want.Owner) {
				m.hall.violate("%s enters with token %d, and has not unlocked token %d, which it has lost", c.want.Owner, x.Token, o.Token)
			}
		}
		x.owes = true
		c.end()
		m.done(at)
		if m.hall.calm {
			m.hall.later(m, time.Millisecond, x.unlock)
		}
		return
	}
	m.hall.seen["holds that were given back"]++
	x.GiveBack(at)
	c.acq = nil
	m.done(at)
	switch {
	case c.gone, c.want.Once:
		c.end()
	case bar == room.Unheld:
		m.hall.later(m, 10*time.Millisecond, func() {
			if !c.ended && !c.gone {
				c.begin()
			}
		})
	default:
		c.barred(bar)
	}
}

// barred waits for an Unlock of the handle, or is the end of a call that may not.
func (c *roomCall) barred(bar room.Bar) {
	c.m.hall.seen["calls whose handle is barred"]++
	if bar != room.Occupied || c.want.Once {
		c.end()
		return
	}
	c.blocked = true
	if other := c.handle.WhenFreed(c); other != any(c) { // one wakes for all
		c.m.hall.later(c.m, 20*time.Millisecond, func() {
			if c.blocked && !c.ended && !c.gone {
				c.awake()
			}
		})
	}
}

func (x *roomHold) acq() *roomAcq { return x.Session.Of.(*roomAcq) }

// unlock is what the caller that was given the hold does at its end: a Release of that hold, or an Unlock of its handle,
// which may end another hold.
func (x *roomHold) unlock() {
	m, y := x.c.m, x
	if !x.owes {
		return
	}
	x.owes = false
	at := m.step()
	m.room.Judge(at)
	if x.Unlock {
		next := x.Handle.Next()
		if next == nil {
			m.hall.violate("there is nothing to unlock for who holds token %d", x.Token)
			m.done(at)
			return
		}
		y = next.Of.(*roomHold)
	}
	switch {
	case y == x:
	case !y.Unlock:
		m.hall.violate("an Unlock ends a hold that is to be released, token %d", y.Token)
	case !y.Lost && !y.Read && y.c.want.Owner != x.c.want.Owner:
		m.hall.violate("an Unlock of %q ends a hold of %q", x.c.want.Owner, y.c.want.Owner)
	case !y.Lost && !y.Read && y.Token != x.Token: // holds of one owner's grant are alike, and so are reads
		m.hall.violate("an Unlock of the holder of token %d ends that of token %d", x.Token, y.Token)
	default:
		m.hall.seen["unlocks that end another hold of the handle"]++
	}
	a := y.acq()
	ending := y.End(at)
	m.hall.tell("%s unlocks token %d: %d", m.id, y.Token, ending)
	m.done(at)
	switch ending {
	case room.Fewer:
		a.tell(nil, nil)
	case room.Last:
		a.release()
	case room.Silent:
		m.hall.seen["unlocks without a command"]++
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
	a.tellers = append(a.tellers, &teller{w, then, a.m.hall.now + a.LongestLease() + room.LateAfter})
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
	got, err := wire.DecodeStatement(reply, st.Said.Opens)
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
	a.releaseUntil(ending, m.hall.now+a.LongestLease()+room.LateAfter)
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
		s.First(&hold.Hold, at)
		c.took(hold)
	}
	m.done(at)
	switch {
	case x != nil:
		c.wait(s, a, x, reserved)
	case in != room.Open:
		c.anew()
	}
}

// join adds a hold of which Redis is not told, if its terms allow that.
func (c *roomCall) join(s *room.Session, at *room.Step) (joined bool) {
	hold := c.newHold()
	hold.joined = true
	if joined = s.NestLocally(&hold.Hold, at); joined {
		c.m.hall.seen["holds that Redis is not told of"]++
		c.took(hold)
	}
	c.m.done(at)
	return joined
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
