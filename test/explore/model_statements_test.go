package explore_test

import (
	"slices"

	"github.com/relock-go/relock/internal/room"
)

// hold names the queue or does not. A statement that leaves the lease as it is reads no
// clock.
func (m *modelLock) hold(client, nonce, owner string, op, writes, reads, ttl int64, queue bool) []any {
	of, g, i := m.find(client, nonce, owner)
	if !m.several && i >= 0 {
		left := m.holdAlone(of, g, &g.sessions[i], op, writes, reads, ttl)
		if ttl > 0 && left > 0 {
			return m.counted(m.said(ttl, left), len(m.queue))
		}
		return m.said(ttl, left)
	}
	if !m.unusual() {
		return m.said(ttl, 0)
	}
	if !queue {
		return m.said(ttl, -5)
	}
	m.purge()
	if of, g, i = m.find(client, nonce, owner); i < 0 || g.sessions[i].expiry <= m.now || !m.several || m.over(g, g.sessions[i].writes > 0) {
		return []any{m.now, int64(0)}
	}
	s := g.sessions[i]
	if op > s.op && (m.holder == of || s.writes > 0 || writes == 0) {
		s.op, s.writes, s.reads, s.expiry = op, writes, reads, max(s.expiry, m.now+ttl)
		g.put(s)
		m.set(of, g)
		if g.writes() > 0 {
			m.holder = g.root(of)
		}
	}
	return m.counted([]any{m.now, s.expiry - m.now}, m.wanting(of))
}

// counted adds to a reply how many wait, if anybody does.
func (m *modelLock) counted(reply []any, n int) []any {
	if n > 0 {
		return append(reply, int64(n))
	}
	return reply
}

func (m *modelLock) said(ttl, left int64) []any {
	if ttl == 0 {
		return []any{left}
	}
	return []any{m.now, left}
}

func (m *modelLock) holdAlone(of string, g *storedGrant, s *storedSession, op, writes, reads, ttl int64) (left int64) {
	if ttl > 0 && s.expiry <= m.now {
		return 0
	}
	if op > s.op && (s.writes > 0 || writes == 0) {
		s.op, s.writes, s.reads = op, writes, reads
		if ttl > 0 {
			s.expiry = max(s.expiry, m.now+ttl)
		}
		m.set(of, g)
	}
	if ttl == 0 {
		return 1
	}
	return s.expiry - m.now
}

func (m *modelLock) downgrade(client, nonce, owner string, op, reads, ttl int64) []any {
	of, _, i := m.live(client, nonce, owner)
	if i < 0 {
		return []any{m.now, int64(0), int64(0)}
	}
	m.purge()
	g := m.grantOf(of)
	s := g.sessions[findIn(g, client, nonce)]
	if op > s.op {
		s.op, s.writes, s.reads, s.expiry = op, 0, reads, max(s.expiry, m.now+ttl)
		g.put(s)
		m.set(of, g)
	}
	if m.unsettled() {
		m.settle()
	}
	m.end()
	return []any{m.now, s.expiry - m.now, int64(0)}
}

func (m *modelLock) release(client, nonce, owner string, until int64, queue, undone bool, served ...string) []any {
	if !queue && m.crowd() {
		return []any{int64(-5), m.now, int64(0)}
	}
	was := int64(0)
	of, g, i := m.find(client, nonce, owner)
	if i >= 0 && (!m.several || g.sessions[i].expiry > m.now) {
		if was = 2; m.over(g, g.sessions[i].writes > 0) {
			was = 0
		}
		m.remove(of, client, nonce)
	} else {
		m.dropExpired()
	}
	if m.waiter(nonce) != nil {
		was = max(was, 1)
		m.drop(nonce)
	}
	m.serve(client, served)
	if undone && m.rester == nonce {
		m.rests = 0
	}
	if until = min(until, m.now+60000); until > m.now {
		m.keep(nonce, until)
	}
	m.purge()
	if owner == "" {
		m.sweep()
	}
	if m.unsettled() && m.lacks != "a release serves the queue" {
		m.settle()
	}
	m.end()
	return []any{was, m.now, int64(0)}
}

// dropRun has those at the front that may have had the lock ask again.
func (m *modelLock) dropRun(client string) {
	for range 15 {
		if len(m.queue) == 0 || m.queue[0].client != client || m.queue[0].named || m.queue[0].mode != "w" {
			return
		}
		nonce := m.queue[0].nonce
		m.drop(nonce)
		m.tell(client, "look "+nonce)
	}
}

// serve ends those who have had the lock under a grant that is released.
func (m *modelLock) serve(client string, served []string) {
	for _, other := range served {
		if of, _, i := m.find(client, other, ""); i >= 0 {
			m.remove(of, client, other)
		} else if m.waiter(other) != nil {
			m.drop(other)
		}
	}
}

// force ends what an owner has of the grant with that token, and what entered through it.
func (m *modelLock) force(owner string, token int64) []any {
	removed := int64(0)
	m.purge()
	ends := func(s owned) bool { return s.low == token && (s.owner == owner || room.Descends(s.owner, owner)) }
	within := func(s owned) bool {
		return s.low == token && s.expiry > m.now && (s.owner == owner || slices.Contains(s.grant.via, owner))
	}
	_, alone := m.alone()
	if all := m.sessions(); slices.ContainsFunc(all, within) {
		gone := slices.DeleteFunc(all, func(s owned) bool { return !ends(s) })
		if removed = 1; gone[0].grant.root(gone[0].owner) == owner {
			m.rests = 0
		}
		low, high := gone[0].grant.low, gone[0].grant.high
		for _, s := range gone {
			m.tell(s.client, "lost "+s.nonce)
			m.remove(s.owner, s.client, s.nonce)
		}
		if alone != nil && m.kind == "fair" && low < high {
			m.dropRun(alone.client)
		}
	} else if owner == "" && token == m.rests && m.rests > m.now {
		removed, m.rests = 1, 0
	}
	if m.unsettled() {
		m.settle()
	}
	m.end()
	return []any{removed, int64(0), int64(0)}
}
