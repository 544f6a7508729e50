package explore_test

import (
	"fmt"
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/wire"
)

// fire is what is due for an acquisition.
func (a *roomAcq) fire() {
	m := a.m
	at := m.step()
	switch {
	case a.Over:
	case a.Session == nil:
		if q, due := a.Entry.Beat(at); due {
			script, block := a.acquire(q, a.Entry.Place, true), q.Block()
			m.askFor(a.nonce, fmt.Sprintf("asks again for %s op %d", a.nonce, q.Op), script, func(reply []any, ok bool) { a.beaten(q, reply, ok, block) })
		}
	default:
		if r, due := a.Session.Due(at); due {
			a.renew(r, at)
		}
	}
	m.done(at)
}

func (a *roomAcq) beaten(q room.Request, reply []any, ok bool, block int) {
	at := a.m.step()
	if ok {
		q.BeatAnswered(a.m.decode(reply, block, q.Terms.TTL), at)
	} else {
		q.Missed(room.Failure{Err: errLost, Unknown: true}, false, at)
	}
	a.m.done(at)
}

func (a *roomAcq) renew(r room.Renewal, at *room.Step) {
	st, held := a.Session.Renew(r, at.Now)
	if !held {
		return
	}
	what := fmt.Sprintf("renews %s op %d", a.nonce, st.Said.Op)
	a.m.ask(what, a.statement(&st), func(reply []any, ok bool) {
		if r.Together {
			a.renewedAmong(&st, reply, ok)
		} else {
			a.renewed(&st, reply, ok)
		}
	})
}

// renewedAmong takes the answer to a renewal that may be made together with others.
func (a *roomAcq) renewedAmong(st *room.Statement, reply []any, ok bool) {
	m := a.m
	if !ok {
		a.renewed(st, reply, ok)
		return
	}
	_, left, waiting, err := wire.DecodeRenew(reply, st.Lease, 1)
	if err != nil {
		m.hall.violate("a reply cannot be read: %v", err)
	}
	at := m.step()
	if len(left) == 0 {
		st.Renewed(waiting[0], at)
	} else {
		a.renew(room.Renewal{Lease: st.Lease}, at)
	}
	m.done(at)
}

func (a *roomAcq) renewed(st *room.Statement, reply []any, ok bool) {
	m := a.m
	at := m.step()
	if !ok {
		st.Unrenewed(nil, new(clock.Instant), at)
		m.done(at)
		return
	}
	v := st.Stated(m.said(st, reply), 0, at)
	if v == room.Short {
		st.Unrenewed(errLost, new(clock.Instant), at)
	}
	if v == room.Again {
		a.renew(room.Renewal{Lease: st.Lease}, at)
	}
	m.done(at)
}

func (m *member) decode(reply []any, block int, ttl time.Duration) room.Answer {
	now, a, err := wire.DecodeAnswer(reply, block, ttl)
	if err != nil {
		m.hall.violate("a reply cannot be read: %v", err)
		return room.Answer{Code: room.Late}
	}
	m.skew = now - m.hall.now.Milliseconds()
	return a
}

// behind are the acquisitions of a run.
func (m *member) behind(run []string) (all []*room.Acquisition) {
	for _, nonce := range run {
		a := m.find(nonce)
		if a == nil {
			break
		}
		all = append(all, &a.Acquisition)
	}
	return all
}
