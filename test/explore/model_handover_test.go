package explore_test

import (
	"fmt"
	"slices"
)

// live is the session of the nonce, where its lease runs.
func (m *modelLock) live(client, nonce, owner string) (of string, g *storedGrant, i int) {
	of, g, i = m.find(client, nonce, owner)
	if i >= 0 && (g.sessions[i].expiry <= m.now || m.over(g, g.sessions[i].writes > 0)) {
		return "", nil, -1
	}
	return of, g, i
}

// move gives an owner's session to another nonce and client.
func (m *modelLock) move(of string, g *storedGrant, i int, to storedSession) {
	s := g.sessions[i]
	to.writes, to.reads = s.writes, s.reads
	c := *g
	c.sessions = slices.Delete(slices.Clone(g.sessions), i, i+1)
	c.put(to)
	m.set(of, &c)
}

func (m *modelLock) detach(client, nonce, owner, ticket string, token, reads, ttl, until int64) []any {
	m.purge()
	of, g, i := m.live(client, nonce, owner)
	has := int64(1)
	if i >= 0 && (token < g.low || token > g.high) {
		has = 0
		m.remove(of, client, nonce)
	} else if i >= 0 {
		if !m.several {
			g.low = token
		}
		s := &g.sessions[i]
		s.writes, s.reads = 1-reads, reads
		m.move(of, g, i, storedSession{client: "-", nonce: ticket, expiry: m.now + ttl})
	} else if _, _, there := m.live("-", ticket, ""); there < 0 {
		return []any{int64(0), int64(0)}
	}
	if until = min(until, m.now+60000); until > m.now {
		m.keep(nonce, until)
	}
	m.handedOver()
	return []any{has, int64(0)}
}

// handedOver ends a script that has moved a session.
func (m *modelLock) handedOver() {
	if m.unsettled() {
		m.settle()
	}
	m.end()
}

func (m *modelLock) resume(ticket, client string, r modelRequest, notAfter int64) []any {
	if notAfter <= m.micros || notAfter > m.micros+60_000_000 {
		return []any{m.now, int64(0), int64(-2)}
	}
	ended := slices.ContainsFunc(m.ended, func(e modelEnded) bool { return e.nonce == r.nonce })
	_, g, i := m.live(client, r.nonce, r.owner)
	own := i >= 0
	if !own {
		_, _, i = m.live("-", ticket, r.owner)
	}
	if ended || i < 0 {
		return []any{m.now, int64(0), int64(-4), int64(0), int64(0), int64(0), ""}
	}
	if own {
		left := g.sessions[i].expiry - m.now
		m.purge()
		return []any{m.now, int64(0), int64(1), g.low, g.high, left, m.wanted(r.owner)}
	}
	m.purge()
	of, g, i := m.live("-", ticket, "")
	m.move(of, g, i, storedSession{client: client, nonce: r.nonce, op: r.op, expiry: m.now + r.ttl})
	m.handedOver()
	return []any{m.now, int64(0), int64(1), g.low, g.high, r.ttl, m.wanted(r.owner)}
}

// ticketOf is the ticket of an actor.
func ticketOf(actor int) string { return fmt.Sprintf("ticket-%015d", actor) }

func (r *modelRun) sayDetach(a speaker, n draws) (said string, got, modelled []any) {
	token, reads, ttl, until := int64(n(3)), int64(0), int64(1+n(3))*modelTTL, int64(0)
	if _, g, i := r.model.find(a.client, a.nonce, a.owner); i >= 0 {
		if _, _, has := r.model.find("-", ticketOf(a.number), ""); has >= 0 {
			return r.sayHold(a, n) // a ticket is a new one
		}
		if token = g.low + token; g.sessions[i].writes == 0 {
			reads = 1
		}
	}
	if n(6) == 0 {
		until = r.micros/1000 + int64(n(3))*400
	}
	args := []any{a.identity(a.client, a.owner), ticketOf(a.number), token, reads, ttl, until, 600_000, modelPrefix}
	got = r.eval("detach", 2, args...)
	if got[0] == int64(1) {
		r.known[ticketOf(a.number)] = a.modelRequest
	}
	return fmt.Sprint("detach ", args), got, r.model.detach(a.client, a.nonce, a.owner, ticketOf(a.number), token, reads, ttl, until)
}

// sayResume has an actor resume its own ticket or that of another, with whom it shares a
// name or who has none either; the latter is refused.
func (r *modelRun) sayResume(a speaker, n draws) (said string, got, modelled []any) {
	of := (a.number + 4*int(n(2))) % 8
	ticket := r.as(r.actor(of), ticketOf(of))
	a.weight, a.permits = ticket.weight, ticket.permits // as the ticket says
	if r.model.waiter(a.nonce) != nil {
		return r.sayHold(a, n) // a new nonce does not wait
	}
	a.op, a.ttl = int64(1+n(3)), int64(1+n(2))*modelTTL
	notAfter := r.micros + 1000*[]int64{10_000, 60_000, 10_000, 10_000, 0, 60_001}[n(6)]
	args := []any{ticketOf(of), a.identity(a.client, a.owner), a.op, notAfter, a.ttl, 600_000, modelPrefix}
	_, _, has := r.model.find("-", ticketOf(of), "")
	got = r.eval("resume", 2, args...)
	modelled = r.model.resume(ticketOf(of), a.client, a.modelRequest, notAfter)
	if fmt.Sprint(got) == fmt.Sprint(modelled) && len(got) > 2 && got[2] == int64(1) {
		r.seen["resumed"]++
		if has >= 0 { // else it is a copy
			r.known[a.nonce] = a.modelRequest
		}
	}
	return fmt.Sprint("resume ", args), got, modelled
}
