package explore_test

import "slices"

// hold names the queue or does not. A statement that leaves the lease as it is reads no
// clock.
func (m *modelLock) hold(client, nonce, owner string, op, writes, reads, ttl int64, queue bool) []any {
	of, g, i := m.find(client, nonce, owner)
	if !m.several && i >= 0 {
		left := m.holdAlone(of, g, &g.sessions[i], op, writes, reads, ttl)
		if ttl > 0 && left > 0 {
			return m.counted(m.said(ttl, left))
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
	if of, g, i = m.find(client, nonce, owner); i < 0 || m.several && g.sessions[i].expiry <= m.now || !m.several {
		return []any{m.now, int64(0)}
	}
	s := g.sessions[i]
	if op > s.op && (m.holder == of || writes == 0) {
		s.op, s.writes, s.reads, s.expiry = op, writes, reads, max(s.expiry, m.now+ttl)
		g.put(s)
		m.set(of, g)
	}
	return m.counted([]any{m.now, s.expiry - m.now})
}

// counted adds to a reply how many wait, if anybody does.
func (m *modelLock) counted(reply []any) []any {
	if n := len(m.queue); n > 0 {
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
	of, g, i := m.find(client, nonce, owner)
	if i < 0 || g.sessions[i].expiry <= m.now {
		return []any{m.now, int64(0), int64(0)}
	}
	m.purge()
	g = m.grantOf(of)
	s := g.sessions[findIn(g, client, nonce)]
	if op > s.op {
		s.op, s.writes, s.reads, s.expiry = op, 0, reads, max(s.expiry, m.now+ttl)
		g.put(s)
		m.set(of, g)
	}
	if len(m.queue) > 0 {
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
		was = 2
		g.sessions = slices.Delete(slices.Clone(g.sessions), i, i+1)
		m.set(of, g)
	} else {
		m.dropExpired()
	}
	if m.waiter(nonce) != nil {
		was = 1
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
	if len(m.queue) > 0 && m.lacks != "a release serves the queue" {
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
		if of, g, i := m.find(client, other, ""); i >= 0 {
			g.sessions = slices.Delete(slices.Clone(g.sessions), i, i+1)
			m.set(of, g)
		} else if m.waiter(other) != nil {
			m.drop(other)
		}
	}
}

func (m *modelLock) force(owner string, token int64) []any {
	removed := int64(0)
	m.purge()
	if g := m.grantOf(owner); g != nil && len(g.sessions) > 0 && g.low == token {
		removed = 1
		for _, s := range g.sessions {
			m.tell(s.client, "lost "+s.nonce)
		}
		if _, alone := m.alone(); alone != nil && m.kind == "fair" && g.low < g.high {
			m.dropRun(alone.client)
		}
		m.set(owner, &storedGrant{})
	} else if owner == "" && token == m.rests && m.rests > m.now {
		removed = 1
	}
	if removed == 1 {
		m.rests = 0
	}
	if len(m.queue) > 0 {
		m.settle()
	}
	m.end()
	return []any{removed, m.now, int64(0), int64(0)}
}
