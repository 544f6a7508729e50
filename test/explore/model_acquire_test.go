package explore_test

import (
	"slices"
	"sort"

	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/room"
)

type modelAnswer struct {
	code, x, y, z int64
	ghost         string
	waiter        *storedWaiter
}

func (m *modelLock) acquire(kind, client string, notAfter int64, echo int, queue bool, requests []modelRequest) []any {
	if notAfter <= m.micros || notAfter > m.micros+60_000_000 {
		return []any{m.now, int64(0), int64(-2)}
	}
	if !queue && m.crowd() {
		return []any{m.now, int64(0), int64(-5)}
	}
	if m.kind != "" && m.kind != kind {
		live := slices.ContainsFunc(m.queue, func(q *storedWaiter) bool { return q.expiry > m.now })
		if m.blocked() > 0 || live {
			return []any{m.now, int64(0), int64(-3), rig.StoredKind(m.kind)}
		}
	}
	m.dropExpired()
	m.purge()
	answers := make([]modelAnswer, len(requests))
	for i, r := range requests {
		answers[i] = m.ask(kind, client, queue, r)
	}
	if echo > 0 && queue {
		m.sweep()
	}
	if (m.holder == "" || m.changed()) && m.unsettled() {
		m.settle()
	}
	reply, waits := []any{m.now, int64(0)}, false
	for i, r := range requests {
		a := answers[i]
		if a.code == 2 || a.code == 3 {
			a = m.conclude(client, r, a)
		}
		waits = waits || a.code == 2
		reply = append(reply, a.code, a.x, a.y, a.z, a.ghost)
	}
	m.end()
	if echo > 0 && waits {
		m.tell(client, m.echo(client, echo, requests))
	}
	return reply
}

// echo is what a client is told that asks for an echo. Where one that is not seen has heard
// so, that is noted for as long as the longest of its requests may wait.
func (m *modelLock) echo(client string, echo int, requests []modelRequest) string {
	switch {
	case !m.deaf[client]:
		return "echo seen"
	case echo != 2:
		return "echo unseen"
	}
	until := m.now
	for _, r := range requests {
		if !m.isEnded(r.nonce) {
			until = max(until, m.now+r.ttl)
		}
	}
	m.unseen = max(m.unseen, until)
	return "echo unseen"
}

func (m *modelLock) isEnded(nonce string) bool {
	return m.lacks != "what has ended is refused" && slices.ContainsFunc(m.ended, func(e modelEnded) bool { return e.nonce == nonce })
}

// ask answers one request before the queue is served.
func (m *modelLock) ask(kind, client string, queue bool, r modelRequest) modelAnswer {
	if m.isEnded(r.nonce) {
		return modelAnswer{code: -4}
	}
	waiting := m.waiter(r.nonce) // before the queue moves on
	if m.holder == "" && len(m.queue) > 0 && r.place <= 0 {
		m.asking[r.nonce] = &[3]int64{}
		m.settle()
		if m.asking[r.nonce][0] != 0 {
			return modelAnswer{code: 2}
		}
	}
	if _, g, i := m.find(client, r.nonce, r.owner); i >= 0 && g.sessions[i].expiry > m.now {
		if m.over(g, g.sessions[i].writes > 0) {
			return modelAnswer{code: -4}
		}
		return modelAnswer{1, g.low, g.high, g.sessions[i].expiry - m.now, m.wanted(r.owner), nil}
	}
	if g := m.grantOf(r.owner); !r.named && g != nil && len(g.sessions) > 0 {
		return modelAnswer{code: -4} // a late copy: what it got was handed over
	}
	if by := m.nearest(r.owner); r.named && m.lacks != "a named owner re-enters" && by != nil {
		if by.owner != r.owner {
			return m.enter(kind, client, queue, r, by, waiting)
		}
		if !queue {
			return modelAnswer{code: -5}
		}
		return m.join(client, r, by)
	}
	if r.rest != "" && m.rester == r.nonce && r.op > m.restOp {
		m.rests = 0 // its call has not had the hold of that grant
	}
	if (len(m.queue) == 0 || m.lacks == "a newcomer stands behind the queue") && m.fits(r) {
		return m.take(kind, client, queue, r)
	}
	if r.place < 0 {
		return modelAnswer{code: 3}
	}
	if !queue {
		return modelAnswer{code: -5}
	}
	return m.wait(kind, client, r, waiting)
}

// take grants the lock to a request that finds nobody in its way.
func (m *modelLock) take(kind, client string, queue bool, r modelRequest) modelAnswer {
	if !queue && m.held() {
		return modelAnswer{code: -5}
	}
	s := storedSession{client: client, nonce: r.nonce, op: r.op, writes: 1, expiry: m.now + r.ttl}
	if r.mode != "w" {
		s.writes, s.reads = 0, 1
	}
	low, high := m.issue(r.block)
	m.kind = kind
	m.rest(r.nonce, r.op, r.rest)
	m.put(r.owner, &storedGrant{mode: r.mode, low: low, high: high, weight: r.weight, sessions: []storedSession{s}})
	return modelAnswer{1, low, high, r.ttl, m.wanted(r.owner), nil}
}

// wait puts a request into the queue, where it may have waited already.
func (m *modelLock) wait(kind, client string, r modelRequest, waiting *storedWaiter) modelAnswer {
	q := &storedWaiter{
		nonce: r.nonce, client: client, owner: r.owner, named: r.named, mode: r.mode, op: r.op,
		place: max(r.place, 0), expiry: m.now + r.ttl, block: r.block, told: m.opens(r), rest: r.rest,
		weight: r.weight, permits: r.permits,
	}
	if waiting != nil {
		q.place, q.op, q.expiry = waiting.place, max(waiting.op, r.op), max(waiting.expiry, q.expiry)
	}
	m.insert(q)
	m.kind = kind
	if m.asking[r.nonce] == nil {
		m.asking[r.nonce] = &[3]int64{}
	}
	first := int64(0)
	if len(m.queue) == 1 {
		first = 1
	}
	return modelAnswer{2, q.place, q.told, first, "", q}
}

// join lets a request enter what its owner holds, or an ancestor.
func (m *modelLock) join(client string, r modelRequest, by *entrance) modelAnswer {
	m.drop(r.nonce)
	if by.mode == "r" && r.mode == "w" {
		return modelAnswer{code: -6}
	}
	s := storedSession{client: client, nonce: r.nonce, op: r.op, writes: 1, expiry: m.now + r.ttl}
	if r.mode != "w" {
		s.writes, s.reads = 0, 1
	}
	g := by.entering(r.owner)
	g.put(s)
	m.put(r.owner, g)
	m.joined()
	return modelAnswer{1, g.low, g.high, r.ttl, m.wanted(r.owner), nil}
}

func (m *modelLock) insert(q *storedWaiter) {
	if q.place == 0 {
		q.place = m.micros
		if n := len(m.queue); n > 0 {
			q.place = max(q.place, m.queue[n-1].place+1)
		}
	}
	before := m.waiter(q.nonce)
	if before != nil {
		m.takeOut(before)
	}
	m.queue = append(m.queue, q)
	sort.SliceStable(m.queue, func(i, j int) bool {
		a, b := m.queue[i], m.queue[j]
		return a.place < b.place || a.place == b.place && a.nonce < b.nonce
	})
	if q.named {
		m.byName[q.owner] = append(m.byName[q.owner], q.nonce)
	}
	m.branches = m.branches || q.named && len(room.Lineage(q.owner)) > 1
	if before == nil && (len(m.queue) == 1 || m.branches) {
		m.want(q)
	}
}

func (m *modelLock) conclude(client string, r modelRequest, a modelAnswer) modelAnswer {
	if got := m.asking[r.nonce]; got != nil && got[0] != 0 {
		return modelAnswer{1, got[0], got[1], got[2] - m.now, m.wanted(r.owner), nil}
	}
	until := m.opens(r)
	if until == 0 {
		until = m.now
	}
	if a.code == 2 {
		if r.mode != "w" && m.holder == "" && len(m.queue) > 0 {
			until = min(until, m.queue[0].expiry)
		}
		a.waiter.told = until
		if r.place > 0 {
			if a.z = 0; len(m.queue) > 0 && m.queue[0].nonce == r.nonce {
				a.z = 1
			}
		}
	}
	a.y = until - m.now
	if _, own := m.alone(); own != nil && own.client == client {
		a.ghost = own.nonce
	} else if all := m.sessions(); m.holder != "" && len(all) > 0 && all[0].client == client {
		a.ghost = all[0].nonce
	}
	a.waiter = nil
	return a
}
