package relock_test

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
	until  int64  // its longest deadline, and whose that is:
	client string
	nonce  string
	grants map[string]*storedGrant
	queue  []*storedWaiter     // by ticket
	byName map[string][]string // named owners' nonces in the queue
	ended  []modelEnded
	due    int64 // when the first of them may be forgotten, as noted; 0: there is none

	shared bool
	asking map[string]*[3]int64 // of requests that the running script answers
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
	m.sent, m.asking, m.shared = nil, map[string]*[3]int64{}, isShared(m.kind)
}

func (m *modelLock) held() bool { return m.holder != "" && m.until > m.now }

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
// that are equal the latest: that one is named as the holder.
func (g *storedGrant) put(s storedSession) {
	g.sessions = slices.DeleteFunc(g.sessions, func(o storedSession) bool { return o.client == s.client && o.nonce == s.nonce })
	at := slices.IndexFunc(g.sessions, func(o storedSession) bool { return o.expiry <= s.expiry })
	if at < 0 {
		at = len(g.sessions)
	}
	g.sessions = slices.Insert(g.sessions, at, s)
}

func (m *modelLock) exclusive(owner string, g *storedGrant) {
	longest := g.sessions[0]
	m.holder, m.until, m.client, m.nonce = owner, longest.expiry, longest.client, longest.nonce
	m.grants[owner] = g
}

func (m *modelLock) dropHolder() {
	delete(m.grants, m.holder)
	m.holder = ""
}

// blocked is until when a writer cannot hold, or 0.
func (m *modelLock) blocked() (until int64) {
	if m.holder != "" {
		return m.until
	}
	if m.shared {
		return m.readers()
	}
	return 0
}

func (m *modelLock) readers() (until int64) {
	for _, g := range m.grants {
		for _, s := range g.sessions {
			if g.mode == "r" && s.expiry > m.now {
				until = max(until, s.expiry)
			}
		}
	}
	return until
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

func (m *modelLock) sweepReaders() {
	for owner, g := range m.grants {
		if g.mode == "r" {
			if m.grants[owner] = m.grantOf(owner); len(m.grants[owner].sessions) == 0 {
				delete(m.grants, owner)
			}
		}
	}
}

func (m *modelLock) settle() {
	if m.holder != "" && m.until <= m.now {
		m.dropHolder()
	}
	if m.shared {
		m.sweepReaders()
	}
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
}

func (m *modelLock) grant(q *storedWaiter) {
	m.drop(q.nonce)
	if m.asking[q.nonce] == nil && m.deaf[q.client] {
		return
	}
	var g *storedGrant
	if q.mode == "r" && q.named {
		g = m.grantOf(q.owner)
	}
	if g == nil || len(g.sessions) == 0 {
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
	if q.mode == "w" {
		m.exclusive(q.owner, g)
	} else {
		m.grants[q.owner] = g
	}
	if q.named {
		for _, other := range m.byName[q.owner] {
			m.tell(m.waiter(other).client, "look "+other)
		}
	}
}

type modelAnswer struct {
	code, x, y, z int64
	ghost         string
	waiter        *storedWaiter
}

func (m *modelLock) acquire(kind, client string, notAfter int64, echo bool, requests []modelRequest) []any {
	if notAfter <= m.now || notAfter > m.now+60000 {
		return []any{m.now, int64(0), int64(-2)}
	}
	if m.kind != "" && m.kind != kind {
		live := slices.ContainsFunc(m.queue, func(q *storedWaiter) bool { return q.expiry > m.now })
		if m.held() || m.shared && m.readers() > 0 || live {
			return []any{m.now, int64(0), int64(-3), m.kind}
		}
	}
	m.shared = isShared(kind)
	if m.holder != "" && !m.held() {
		m.dropHolder()
	}
	answers := make([]modelAnswer, len(requests))
	for i, r := range requests {
		answers[i] = m.ask(kind, client, r)
	}
	if echo {
		m.sweep()
	}
	if m.holder == "" && len(m.queue) > 0 || m.shared && echo {
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
		m.forget()
		m.tell(client, "echo")
	}
	return reply
}

func (m *modelLock) ask(kind, client string, r modelRequest) modelAnswer {
	g, waiting := m.grantOf(r.owner), m.waiter(r.nonce)
	if slices.ContainsFunc(m.ended, func(e modelEnded) bool { return e.nonce == r.nonce }) {
		return modelAnswer{code: -4}
	}
	if m.holder == "" && len(m.queue) > 0 && r.place <= 0 {
		m.asking[r.nonce] = &[3]int64{}
		m.settle()
		if m.asking[r.nonce][0] != 0 {
			return modelAnswer{code: 2}
		}
		g = m.grantOf(r.owner)
	}
	if g != nil && (m.shared || m.holder == r.owner) {
		if a, ok := m.join(kind, client, r, g); ok {
			return a
		}
	}
	s := storedSession{client: client, nonce: r.nonce, op: r.op, writes: 1, expiry: m.now + r.ttl}
	if r.mode == "r" {
		s.writes, s.reads = 0, 1
	}
	if len(m.queue) == 0 && (r.mode == "r" && m.holder == "" || r.mode == "w" && m.blocked() == 0) {
		low, high := m.issue(r.block)
		g := &storedGrant{mode: r.mode, low: low, high: high, sessions: []storedSession{s}}
		if m.kind = kind; r.mode == "w" {
			m.exclusive(r.owner, g)
		} else {
			m.grants[r.owner] = g
		}
		return modelAnswer{1, low, high, r.ttl, "", nil}
	}
	if r.place < 0 {
		return modelAnswer{code: 3}
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

func (m *modelLock) join(kind, client string, r modelRequest, g *storedGrant) (a modelAnswer, ok bool) {
	i := findIn(g, client, r.nonce)
	if i < 0 {
		if !r.named || len(g.sessions) == 0 {
			return a, false
		}
		m.drop(r.nonce)
		if g.mode == "r" && r.mode == "w" {
			return modelAnswer{code: -6}, true
		}
		s := storedSession{client: client, nonce: r.nonce, op: r.op, writes: 1, expiry: m.now + r.ttl}
		if r.mode == "r" {
			s.writes, s.reads = 0, 1
		}
		g.put(s)
		if i = findIn(g, client, r.nonce); g.mode == "r" {
			m.grants[r.owner] = g
		} else {
			m.exclusive(r.owner, g)
			m.kind = kind
		}
	}
	return modelAnswer{1, g.low, g.high, g.sessions[i].expiry - m.now, "", nil}, true
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
	if m.holder != "" && m.client == client {
		a.ghost = m.nonce
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

func (m *modelLock) downgraded(owner string, g *storedGrant) {
	g.mode = "r"
	m.grants[owner] = g
	m.holder = ""
}

func (m *modelLock) hold(client, nonce, owner string, op, writes, reads, ttl int64, queue bool) []any {
	writer := m.held() && m.holder == owner
	g := m.grantOf(owner)
	if g == nil || !writer && !m.shared || findIn(g, client, nonce) < 0 {
		return []any{int64(0), m.now}
	}
	s := g.sessions[findIn(g, client, nonce)]
	if op > s.op && (writer || queue) {
		s.op, s.writes, s.reads, s.expiry = op, writes, reads, max(s.expiry, m.now+ttl)
		g.put(s)
		switch {
		case writer && queue && g.writes() == 0:
			m.downgraded(owner, g)
		case writer:
			m.exclusive(owner, g)
		default:
			m.grants[owner] = g
		}
	}
	return []any{int64(1), m.now, g.low, g.high, s.expiry - m.now}
}

func (m *modelLock) downgrade(client, nonce, owner string, op, reads, ttl int64) []any {
	g := m.grantOf(owner)
	if g == nil || findIn(g, client, nonce) < 0 {
		return []any{int64(0), m.now, int64(0)}
	}
	s := g.sessions[findIn(g, client, nonce)]
	if op > s.op {
		s.op, s.writes, s.reads, s.expiry = op, 0, reads, max(s.expiry, m.now+ttl)
		g.put(s)
	}
	left := s.expiry - m.now
	switch {
	case m.holder == owner && g.writes() == 0:
		m.downgraded(owner, g)
	case m.holder == owner:
		m.exclusive(owner, g)
	default:
		m.grants[owner] = g
	}
	if len(m.queue) > 0 {
		m.settle()
	}
	m.end()
	return []any{int64(1), m.now, g.low, g.high, left, int64(0)}
}

func (m *modelLock) release(client, nonce, owner string, until int64) []any {
	was, anybody := int64(0), owner == ""
	g := m.grantOf(owner)
	if m.holder != "" && !m.held() {
		m.dropHolder()
	}
	if owner == "" && m.holder != "" {
		owner = m.holder
		g = m.grantOf(owner)
	}
	if g != nil && (m.shared || m.holder == owner) {
		if i := findIn(g, client, nonce); i >= 0 {
			was = 2
			g.sessions = slices.Delete(g.sessions, i, i+1)
			switch {
			case len(g.sessions) == 0 && m.holder == owner:
				m.dropHolder()
			case len(g.sessions) == 0:
				delete(m.grants, owner)
			case g.mode == "w" && g.writes() == 0:
				m.downgraded(owner, g)
			case g.mode == "w":
				m.exclusive(owner, g)
			default:
				m.grants[owner] = g
			}
		}
	}
	if m.waiter(nonce) != nil {
		was = 1
		m.drop(nonce)
	}
	if until = min(until, m.now+60000); until > m.now {
		m.keep(nonce, until)
	}
	if anybody {
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
	if g := m.grantOf(owner); g != nil && len(g.sessions) > 0 && g.low == token {
		removed = 1
		for _, s := range g.sessions {
			m.tell(s.client, "lost "+s.nonce)
		}
		if m.holder == owner {
			m.holder = ""
		}
		delete(m.grants, owner)
	}
	if len(m.queue) > 0 {
		m.settle()
	}
	m.end()
	return []any{removed, m.now, int64(0)}
}

// text is all that can be seen of the lock: what is dead does not count.
func (s stored) text(now int64) string {
	var parts []string
	for owner, g := range s.live(now) {
		parts = append(parts, fmt.Sprintf("%s: %s %d-%d %v", owner, g.mode, g.low, g.high, g.sessions))
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
