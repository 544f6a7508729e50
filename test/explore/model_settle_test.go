package explore_test

import "fmt"

func (m *modelLock) settle() {
	m.dropExpired()
	m.purge()
	for again := true; again; {
		m.admitBranches()
		m.serveQueue()
		again = m.tellEnded() || len(m.stirred) > 0
	}
	if len(m.queue) > 0 && m.asking[m.queue[0].nonce] == nil {
		if head, until := m.queue[0], m.opens(m.queue[0].request()); until > 0 && until < head.told {
			head.told = until
			m.tell(head.client, "look "+head.nonce)
		}
	}
	for _, nonce := range m.looks {
		if q := m.waiter(nonce); q != nil { // else it has been served, or has ended
			m.tell(q.client, "look "+nonce)
		}
	}
	m.looks = nil
}

// serveQueue grants the lock to those at the front as long as they fit.
func (m *modelLock) serveQueue() {
	for m.holder == "" && len(m.queue) > 0 {
		switch head := m.queue[0]; {
		case head.expiry <= m.now && m.lacks != "a dead entry is passed over":
			m.sweep()
		case !m.fits(head.request()):
			return
		default:
			m.grant(head)
		}
	}
}

// request is what a waiter asks for.
func (q *storedWaiter) request() modelRequest {
	return modelRequest{nonce: q.nonce, owner: q.owner, mode: q.mode, named: q.named, weight: q.weight, permits: q.permits}
}

// run is who of the same client stands right behind one that is granted a fair lock.
func (m *modelLock) run(first *storedWaiter, low, high int64) (nonces string) {
	for i, q := range m.queue {
		if m.kind != "fair" || first.named || low == high || q.client != first.client || q.named || q.rest != "" || i == 15 {
			break
		}
		nonces += " " + q.nonce
	}
	return nonces
}

func (m *modelLock) grant(q *storedWaiter) {
	m.drop(q.nonce)
	if m.asking[q.nonce] == nil && m.deaf[q.client] {
		if m.unseen <= m.now {
			return
		}
		m.spared++
	}
	var by *entrance
	if q.named {
		by = m.nearest(q.owner)
	}
	var g *storedGrant
	if by == nil {
		low, high := m.issue(q.block)
		g = &storedGrant{mode: q.mode, low: low, high: high, weight: q.weight}
		m.rest(q.nonce, q.op, q.rest)
	} else {
		if g = by.entering(q.owner); by.owner != q.owner {
			m.census["entrances of those who waited"]++
		}
		m.joined()
	}
	if answer := m.asking[q.nonce]; answer != nil {
		*answer = [3]int64{g.low, g.high, q.expiry}
	} else {
		text := fmt.Sprintf("grant %s %d %d %d", q.nonce, q.op, g.low, g.high)
		m.granted = append(m.granted, modelGranted{q.client, q.nonce, q.owner, text, m.run(q, g.low, g.high)})
	}
	s := storedSession{client: q.client, nonce: q.nonce, op: q.op, writes: 1, expiry: q.expiry}
	if q.mode != "w" {
		s.writes, s.reads = 0, 1
	}
	g.put(s)
	m.put(q.owner, g)
	if q.named && (by == nil || by.owner != q.owner) {
		m.looks = append(m.looks, m.byName[q.owner]...)
	}
}
