package explore_test

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// A modelLock is what the scripts do to one lock, in plain Go and plain
// structures. It is compared with them step by step in model_test.go.
type modelLock struct {
	micros int64 // the server's clock
	now    int64 // the same in ms
	deaf   map[string]bool
	sent   []string // messages: "client text"

	kind   string
	token  int64
	holder string // owner of the exclusive grant
	grants map[string]*storedGrant
	queue  []*storedWaiter     // by ticket
	byName map[string][]string // named owners' nonces in the queue
	looks  []string            // nonces of an owner that holds now, who are to be told
	ended  []modelEnded
	due    int64 // when the first of them may be forgotten, as noted; 0: there is none

	several bool                 // sessions hold together, or have: none is alone in its record
	asking  map[string]*[3]int64 // of requests that the running script answers
}

type modelEnded struct {
	nonce string
	until int64
}

type modelRequest struct {
	nonce, owner, mode    string
	named                 bool
	op, ttl, block, place int64
}

func isShared(kind string) bool { return strings.HasSuffix(kind, "rw") }

func (m *modelLock) begin(micros int64) {
	m.micros, m.now = micros, micros/1000
	m.sent, m.asking = nil, map[string]*[3]int64{}
}

// longest is the session of the exclusive grant with the longest lease.
func (m *modelLock) longest() storedSession { return m.grants[m.holder].sessions[0] }

// grantOf returns a copy of an owner's grant without dead sessions.
func (m *modelLock) grantOf(owner string) *storedGrant {
	g := m.grants[owner]
	if g == nil {
		return nil
	}
	c := *g
	c.sessions = slices.DeleteFunc(slices.Clone(g.sessions), func(s storedSession) bool { return s.expiry <= m.now })
	return &c
}

func findIn(g *storedGrant, client, nonce string) int {
	return slices.IndexFunc(g.sessions, func(s storedSession) bool { return s.client == client && s.nonce == nonce })
}

// put puts a session in where it stands by its lease, the longest first, and of those
// that are equal by its nonce.
func (g *storedGrant) put(s storedSession) {
	g.sessions = slices.DeleteFunc(g.sessions, func(o storedSession) bool { return o.client == s.client && o.nonce == s.nonce })
	at := slices.IndexFunc(g.sessions, func(o storedSession) bool { return o.expiry < s.expiry || o.expiry == s.expiry && o.nonce > s.nonce })
	if at < 0 {
		at = len(g.sessions)
	}
	g.sessions = slices.Insert(g.sessions, at, s)
}

func (m *modelLock) held() bool { return len(m.grants) > 0 }

// put stores a session that begins, of a grant that has it already.
func (m *modelLock) put(owner string, g *storedGrant) {
	m.several = m.held() && (m.several || m.grants[owner] == nil || len(m.grants[owner].sessions) < len(g.sessions) || len(m.grants) > 1)
	m.grants[owner] = g
	if g.mode == "w" {
		m.holder = owner
	}
}

// set stores what is left of a grant, or what has changed in it.
func (m *modelLock) set(owner string, g *storedGrant) {
	if m.grants[owner] = g; len(g.sessions) == 0 {
		delete(m.grants, owner)
	}
	if m.holder == owner && g.writes() == 0 {
		g.mode, m.holder = "r", ""
	}
}

// alone is the session that holds alone, and its owner.
func (m *modelLock) alone() (owner string, s *storedSession) {
	if !m.several {
		for owner, g := range m.grants {
			return owner, &g.sessions[0]
		}
	}
	return "", nil
}

// dropExpired forgets the session that held alone.
func (m *modelLock) dropExpired() {
	if _, s := m.alone(); s != nil && s.expiry <= m.now {
		m.grants, m.holder = map[string]*storedGrant{}, ""
	}
}

// purge forgets those of several that are past their deadline.
func (m *modelLock) purge() {
	if !m.several {
		return
	}
	for owner := range m.grants {
		m.set(owner, m.grantOf(owner))
	}
}

// blocked is until when a writer cannot hold, or 0.
func (m *modelLock) blocked() (until int64) {
	for _, g := range m.grants {
		for _, s := range g.sessions {
			if s.expiry > m.now {
				until = max(until, s.expiry)
			}
		}
	}
	return until
}

// find returns the session of the nonce, whoever's it is where owner is "".
func (m *modelLock) find(client, nonce, owner string) (of string, g *storedGrant, i int) {
	for of, g := range m.grants {
		if i := findIn(g, client, nonce); i >= 0 && (owner == "" || owner == of) {
			return of, g, i
		}
	}
	return "", nil, -1
}

func (m *modelLock) tell(client, text string) {
	if !m.deaf[client] {
		m.sent = append(m.sent, client+" "+text)
	}
}

func (m *modelLock) issue(size int64) (low, high int64) {
	high = m.micros
	if m.token == 0 {
		size = 1
	}
	if low = max(m.token, high-size) + 1; low > high {
		low = m.token + 1
		high = low
	}
	m.token = high
	return low, high
}

func (m *modelLock) waiter(nonce string) *storedWaiter {
	for _, q := range m.queue {
		if q.nonce == nonce {
			return q
		}
	}
	return nil
}

func (m *modelLock) drop(nonce string) {
	if q := m.waiter(nonce); q != nil {
		m.queue = slices.DeleteFunc(m.queue, func(o *storedWaiter) bool { return o == q })
		m.byName[q.owner] = slices.DeleteFunc(m.byName[q.owner], func(n string) bool { return n == nonce })
	}
}

// forget drops ended nonces whose time has passed, from the oldest on.
func (m *modelLock) forget() {
	before := len(m.ended)
	for len(m.ended) > 0 && m.ended[0].until <= m.now {
		m.ended = m.ended[1:]
	}
	switch {
	case len(m.ended) == before:
	case len(m.ended) == 0:
		m.due = 0
	default:
		m.due = m.ended[0].until
	}
}

// end is the last step of a script that changes the lock.
func (m *modelLock) end() {
	if m.due > 0 && m.due <= m.now {
		m.forget()
	}
	m.several = m.several && m.held()
}

// keep notes a nonce that must not be granted any more.
func (m *modelLock) keep(nonce string, until int64) {
	m.forget()
	m.due = until
	if len(m.ended) > 0 {
		m.due = m.ended[0].until
	}
	if i := slices.IndexFunc(m.ended, func(e modelEnded) bool { return e.nonce == nonce }); i >= 0 {
		m.ended[i].until = until
	} else {
		m.ended = append(m.ended, modelEnded{nonce, until})
	}
}

func (m *modelLock) sweep() {
	for _, q := range slices.Clone(m.queue) {
		if q.expiry <= m.now {
			m.drop(q.nonce)
		}
	}
}

func (m *modelLock) settle() {
	m.dropExpired()
	m.purge()
	for m.holder == "" && len(m.queue) > 0 {
		switch head := m.queue[0]; {
		case head.expiry <= m.now:
			m.sweep()
			continue
		case head.mode == "w" && m.blocked() > 0:
		default:
			m.grant(head)
			continue
		}
		break
	}
	if len(m.queue) > 0 && m.asking[m.queue[0].nonce] == nil {
		if head, until := m.queue[0], m.blocked(); until > 0 && until < head.told {
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

func (m *modelLock) grant(q *storedWaiter) {
	m.drop(q.nonce)
	if m.asking[q.nonce] == nil && m.deaf[q.client] {
		return
	}
	var g *storedGrant
	if q.named {
		g = m.grantOf(q.owner)
	}
	begins := g == nil || len(g.sessions) == 0
	if begins {
		low, high := m.issue(q.block)
		g = &storedGrant{mode: q.mode, low: low, high: high}
	}
	if answer := m.asking[q.nonce]; answer != nil {
		*answer = [3]int64{g.low, g.high, q.expiry}
	} else {
		m.tell(q.client, fmt.Sprintf("grant %s %d %d %d", q.nonce, q.op, g.low, g.high))
	}
	s := storedSession{client: q.client, nonce: q.nonce, op: q.op, writes: 1, expiry: q.expiry}
	if q.mode == "r" {
		s.writes, s.reads = 0, 1
	}
	g.put(s)
	m.put(q.owner, g)
	if q.named && begins {
		m.looks = append(m.looks, m.byName[q.owner]...)
	}
}

// crowd reports whether there is more than one session that holds alone: who may touch
// one key only can say nothing then.
func (m *modelLock) crowd() bool { return len(m.queue) > 0 || m.several || len(m.ended) > 0 }

type modelAnswer struct {
	code, x, y, z int64
	ghost         string
	waiter        *storedWaiter
}

func (m *modelLock) acquire(kind, client string, notAfter int64, echo, queue bool, requests []modelRequest) []any {
	if notAfter <= m.micros || notAfter > m.micros+60_000_000 {
		return []any{m.now, int64(0), int64(-2)}
	}
	if !queue && m.crowd() {
		return []any{m.now, int64(0), int64(-5)}
	}
	if m.kind != "" && m.kind != kind {
		live := slices.ContainsFunc(m.queue, func(q *storedWaiter) bool { return q.expiry > m.now })
		if m.blocked() > 0 || live {
			return []any{m.now, int64(0), int64(-3), m.kind}
		}
	}
	m.dropExpired()
	m.purge()
	answers := make([]modelAnswer, len(requests))
	for i, r := range requests {
		answers[i] = m.ask(kind, client, queue, r)
	}
	if echo && queue {
		m.sweep()
	}
	if m.holder == "" && len(m.queue) > 0 {
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
	if echo && waits {
		m.tell(client, "echo")
	}
	return reply
}

func (m *modelLock) ask(kind, client string, queue bool, r modelRequest) modelAnswer {
	waiting := m.waiter(r.nonce)
	if slices.ContainsFunc(m.ended, func(e modelEnded) bool { return e.nonce == r.nonce }) {
		return modelAnswer{code: -4}
	}
	if m.holder == "" && len(m.queue) > 0 && r.place <= 0 {
		m.asking[r.nonce] = &[3]int64{}
		m.settle()
		if m.asking[r.nonce][0] != 0 {
			return modelAnswer{code: 2}
		}
	}
	if _, g, i := m.find(client, r.nonce, r.owner); i >= 0 && g.sessions[i].expiry > m.now {
		return modelAnswer{1, g.low, g.high, g.sessions[i].expiry - m.now, "", nil}
	}
	if g := m.grantOf(r.owner); r.named && g != nil && len(g.sessions) > 0 {
		if !queue {
			return modelAnswer{code: -5}
		}
		return m.join(client, r, g)
	}
	s := storedSession{client: client, nonce: r.nonce, op: r.op, writes: 1, expiry: m.now + r.ttl}
	if r.mode == "r" {
		s.writes, s.reads = 0, 1
	}
	if len(m.queue) == 0 && (r.mode == "r" && m.holder == "" || r.mode == "w" && m.blocked() == 0) {
		if !queue && m.held() {
			return modelAnswer{code: -5}
		}
		low, high := m.issue(r.block)
		g := &storedGrant{mode: r.mode, low: low, high: high, sessions: []storedSession{s}}
		m.kind = kind
		m.put(r.owner, g)
		return modelAnswer{1, low, high, r.ttl, "", nil}
	}
	if r.place < 0 {
		return modelAnswer{code: 3}
	}
	if !queue {
		return modelAnswer{code: -5}
	}
	q := &storedWaiter{
		nonce: r.nonce, client: client, owner: r.owner, named: r.named, mode: r.mode, op: r.op,
		ticket: max(r.place, 0), expiry: m.now + r.ttl, block: r.block, told: m.blocked(),
	}
	if waiting != nil {
		q.ticket, q.op, q.expiry = waiting.ticket, max(waiting.op, r.op), max(waiting.expiry, q.expiry)
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
	return modelAnswer{2, q.ticket, q.told, first, "", q}
}

func (m *modelLock) join(client string, r modelRequest, g *storedGrant) modelAnswer {
	m.drop(r.nonce)
	if g.mode == "r" && r.mode == "w" {
		return modelAnswer{code: -6}
	}
	s := storedSession{client: client, nonce: r.nonce, op: r.op, writes: 1, expiry: m.now + r.ttl}
	if r.mode == "r" {
		s.writes, s.reads = 0, 1
	}
	g.put(s)
	m.put(r.owner, g)
	return modelAnswer{1, g.low, g.high, r.ttl, "", nil}
}

func (m *modelLock) insert(q *storedWaiter) {
	if q.ticket == 0 {
		q.ticket = m.micros
		if n := len(m.queue); n > 0 {
			q.ticket = max(q.ticket, m.queue[n-1].ticket+1)
		}
	}
	m.drop(q.nonce)
	m.queue = append(m.queue, q)
	sort.SliceStable(m.queue, func(i, j int) bool {
		a, b := m.queue[i], m.queue[j]
		return a.ticket < b.ticket || a.ticket == b.ticket && a.nonce < b.nonce
	})
	if q.named {
		m.byName[q.owner] = append(m.byName[q.owner], q.nonce)
	}
}

func (m *modelLock) conclude(client string, r modelRequest, a modelAnswer) modelAnswer {
	if got := m.asking[r.nonce]; got != nil && got[0] != 0 {
		return modelAnswer{1, got[0], got[1], got[2] - m.now, "", nil}
	}
	until := m.blocked()
	if until == 0 {
		until = m.now
	}
	if a.code == 2 {
		if r.mode == "r" && m.holder == "" && len(m.queue) > 0 {
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
	} else if m.holder != "" && m.longest().client == client {
		a.ghost = m.longest().nonce
	}
	a.waiter = nil
	return a
}

func (g *storedGrant) writes() (n int64) {
	for _, s := range g.sessions {
		n += s.writes
	}
	return n
}

// hold names the queue or does not. A statement that leaves the lease as it is reads no
// clock.
func (m *modelLock) hold(client, nonce, owner string, op, writes, reads, ttl int64, queue bool) []any {
	of, g, i := m.find(client, nonce, owner)
	if !m.several && i >= 0 {
		return m.said(ttl, m.holdAlone(of, g, &g.sessions[i], op, writes, reads, ttl))
	}
	if !m.several && len(m.ended) == 0 {
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
	return []any{m.now, s.expiry - m.now}
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

func (m *modelLock) release(client, nonce, owner string, until int64, queue bool) []any {
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
	if until = min(until, m.now+60000); until > m.now {
		m.keep(nonce, until)
	}
	m.purge()
	if owner == "" {
		m.sweep()
	}
	if len(m.queue) > 0 {
		m.settle()
	}
	m.end()
	return []any{was, m.now, int64(0)}
}

func (m *modelLock) force(owner string, token int64) []any {
	removed := int64(0)
	m.purge()
	if g := m.grantOf(owner); g != nil && len(g.sessions) > 0 && g.low == token {
		removed = 1
		for _, s := range g.sessions {
			m.tell(s.client, "lost "+s.nonce)
		}
		m.set(owner, &storedGrant{})
	}
	if len(m.queue) > 0 {
		m.settle()
	}
	m.end()
	return []any{removed, m.now, int64(0), int64(0)}
}

// text is all that can be seen of the lock: what is dead does not count.
func (s stored) text(now int64) string {
	var parts []string
	for owner, g := range s.live(now) {
		sorted := slices.SortedFunc(slices.Values(g.sessions), func(a, b storedSession) int { return strings.Compare(a.nonce, b.nonce) })
		parts = append(parts, fmt.Sprintf("%s: %s %d-%d %v", owner, g.mode, g.low, g.high, sorted))
	}
	slices.Sort(parts)
	for _, q := range s.queue {
		if q.expiry > now {
			parts = append(parts, fmt.Sprintf("waits %s %s %s %q op %d at %d until %d for %d named %v",
				q.nonce, q.client, q.mode, q.owner, q.op, q.ticket, q.expiry, q.block, q.named))
		}
	}
	return strings.Join(append(parts, fmt.Sprintf("kind %s token %d", s.kind, s.token)), "\n")
}

func (m *modelLock) text() string {
	s := stored{kind: m.kind, token: m.token, holder: m.holder, grants: map[string]storedGrant{}}
	for owner, g := range m.grants {
		s.grants[owner] = *g
	}
	for _, q := range m.queue {
		s.queue = append(s.queue, *q)
	}
	return s.text(m.now)
}
