package explore_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/relock-go/relock/internal/room"
)

// A roomCall is a call that wants the lock, as the root package makes them.
type roomCall struct {
	m        *member
	want     room.Want
	follower *room.Follower // it stands in line
	acq      *roomAcq       // it asks by that, or waits for it
	asking   *question      // under way
	request  room.Request
	place    int64
	handle   *room.Handle
	waking   bool // it has been woken, and has not looked yet
	blocked  bool // it waits for an Unlock of its handle
	putting  bool // it has its hold, and has not put it on its handle
	gone     bool // its context has ended
	ended    bool
	began    time.Duration
}

// A roomAcq is an acquisition and its driver.
type roomAcq struct {
	room.Acquisition
	m       *member
	nonce   string
	owner   string
	timer   bool
	due     time.Duration
	turn    bool // a statement is under way
	tellers []*teller
}

// A question is a request that is waited for.
type question struct{ over bool }

var errLost = errors.New("lost on the way")

func (m *member) newAcq(c *roomCall, first bool) *roomAcq {
	h := m.hall
	h.nonces++
	a := &roomAcq{m: m, nonce: fmt.Sprintf("%s/%d", m.id, h.nonces), owner: c.want.Owner}
	if a.owner == "" {
		m.owners++
		a.owner = fmt.Sprintf("~%s:%d", m.id, m.owners)
	}
	a.Name, a.Terms, a.Read, a.Of = c.want.Owner, c.want.Terms, c.want.Read, a
	m.room.Enter(&a.Acquisition, first)
	return a
}

// begin is a new try of the call, as after a grant that was over.
func (c *roomCall) begin() {
	m := c.m
	at := m.look()
	if bar, _ := m.room.Bars(c.handle, c.want); bar != room.NoBar {
		c.barred(bar)
		m.done(at)
		return
	}
	if c.want.Owner != "" {
		if s := m.room.HeldBy(c.want); s != nil {
			if !c.join(s, at) {
				c.reenter(s, false)
			}
			return
		}
	}
	if m.closing {
		c.end()
		m.done(at)
		return
	}
	way, p, s := m.room.Want(c.want, at)
	switch way {
	case room.Behind:
		p.Who, c.follower = c, p
		m.done(at)
	case room.Retake:
		m.hall.seen["kept grants that were taken again"]++
		c.acq = s.Of.(*roomAcq)
		c.hold(c.acq, at)
		m.done(at)
	default:
		c.acq = m.newAcq(c, way == room.First)
		m.done(at)
		c.askAndWait(room.PlaceNew)
	}
}

func (c *roomCall) askAndWait(place int64) {
	if c.place = place; c.want.Once {
		c.place = room.PlaceNone
	}
	c.sendOnce()
}

// sendOnce makes one request.
func (c *roomCall) sendOnce() {
	m, a := c.m, c.acq
	if c.ended || c.gone {
		return
	}
	at := m.step()
	if !a.Asks() {
		m.done(at)
		c.await()
		return
	}
	if m.find(a.nonce) == nil {
		m.known = append(m.known, a)
	}
	c.request = a.Entry.NextRequest(at)
	block := a.Entry.Block()
	script := a.acquire(c.request, c.place, false)
	m.done(at)
	c.asking = m.askFor(a.nonce, fmt.Sprintf("acquire %s op %d place %d", a.nonce, c.request.Op, c.place), script, func(reply []any, ok bool) { c.answered(reply, ok, block) })
}

// acquire is a request as the script is told of it.
func (a *roomAcq) acquire(q room.Request, place int64, beat bool) func() []any {
	h, mode := a.m.hall, "w"
	if a.Read {
		mode = "r"
	}
	one := []modelRequest{{
		nonce: a.nonce, owner: a.owner, mode: mode, named: a.Named(), op: q.Op, ttl: a.Terms.TTL.Milliseconds(),
		block: int64(q.Block()), place: place,
	}}
	echo := 0
	if beat {
		echo = 1
	}
	return func() []any { return h.lock.acquire(h.setup.kind, a.m.id, q.NotAfter*1000, echo, true, one) }
}

func (c *roomCall) answered(reply []any, ok bool, block int) {
	m, a := c.m, c.acq
	at := m.step()
	if !ok {
		c.request.Unanswered(room.Failure{Err: errLost, Unknown: true}, false)
		m.done(at)
		if c.want.Once {
			c.giveUp()
			return
		}
		m.hall.later(m, 11*time.Millisecond, c.sendOnce)
		return
	}
	said := m.decode(reply, block, a.Terms.TTL)
	_ = c.request.Answered(&said, 0, at)
	switch said.Code {
	case room.Held:
		c.hold(a, at)
		m.done(at)
	case room.Queued:
		m.done(at)
		c.await()
	case room.Late:
		m.done(at)
		m.hall.later(m, time.Millisecond, c.sendOnce)
	case room.Ended:
		m.done(at)
		c.anew()
	default:
		m.done(at)
		c.giveUp()
	}
}

// anew gives up what the call has, and asks once more.
func (c *roomCall) anew() {
	if a := c.acq; a != nil {
		at := c.m.step()
		a.GiveUp(at)
		c.m.done(at)
	}
	if c.acq = nil; c.gone || c.want.Once {
		c.end()
		return
	}
	c.m.hall.later(c.m, 10*time.Millisecond, func() {
		if !c.ended && !c.gone {
			c.begin()
		}
	})
}

// giveUp ends the call without a hold.
func (c *roomCall) giveUp() {
	if a := c.acq; a != nil {
		c.acq = nil // a statement of the call may be under way: when it ends, nothing is given up a second time
		at := c.m.step()
		a.GiveUp(at)
		c.m.done(at)
	}
	c.end()
}

func (c *roomCall) end() {
	c.ended = true
	if c.asking != nil {
		c.asking.over = true
	}
}

// await waits for the call's acquisition, unless it waits no more.
func (c *roomCall) await() {
	if c.acq.Waits() {
		c.acq.Entry.Waiter = c
		return
	}
	c.outcome()
}

// awake looks what the call was woken for.
func (c *roomCall) awake() {
	if c.waking = false; c.ended || c.gone {
		return
	}
	if c.blocked {
		c.blocked = false
		c.begin()
		return
	}
	p := c.follower
	if c.follower = nil; p == nil {
		c.outcome()
		return
	}
	switch got := p.Given; {
	case got.Joined:
		c.m.hall.seen["holds that were joined"]++
		c.reenter(got.Acquisition.Session, true)
	case got.Acquisition != nil:
		c.m.hall.seen["holds and places that were handed on"]++
		c.acq = got.Acquisition.Of.(*roomAcq)
		c.await()
	default:
		at := c.m.step()
		c.acq = c.m.newAcq(c, true)
		c.m.done(at)
		c.askAndWait(got.Place)
	}
}

// outcome goes on with an acquisition that waits no more.
func (c *roomCall) outcome() {
	if given := c.acq.Entry; given != nil && given.Given != nil {
		c.m.hall.seen["holds of a run"]++
		c.acq = given.Given.Of.(*roomAcq)
	}
	a := c.acq
	if a.Over {
		if _, refused := a.Why().(*room.Refusal); refused { //nolint:errorlint // never wrapped
			c.end()
			return
		}
		c.anew()
		return
	}
	at := c.m.step()
	if a.Session.ToConfirm() {
		x := a.Terms.Wish()
		a.Session.Ledger.Wish(x)
		c.m.done(at)
		a.tell(x, func(known bool) {
			a.Session.Ledger.Withdraw(x)
			if !known || c.gone {
				c.anew()
				return
			}
			at := c.m.step()
			c.hold(a, at)
			c.m.done(at)
		})
		return
	}
	c.hold(a, at)
	c.m.done(at)
}

// hold makes the call's hold, unless what it was granted is over.
func (c *roomCall) hold(a *roomAcq, at *room.Step) {
	a.Session.Check(at)
	if a.Over {
		c.m.hall.later(c.m, 0, func() {
			if !c.ended && !c.gone {
				c.anew()
			}
		})
		return
	}
	x := c.newHold()
	a.Session.First(&x.Hold, at)
	c.took(x)
}
