package explore_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/relock-go/relock/internal/room"
)

// newModelLock is a free lock. Nobody sees that those clients hear who are named.
func newModelLock(deaf ...string) modelLock {
	m := modelLock{
		grants: map[string]*storedGrant{}, byName: map[string][]string{}, deaf: map[string]bool{},
		modelBranches: modelBranches{stirred: map[string]bool{}, counts: map[string][2]int{}, census: map[string]int{}},
	}
	for _, client := range deaf {
		m.deaf[client] = true
	}
	return m
}

// A modelLock is what the scripts do to one lock, in plain Go and plain
// structures. It is compared with them step by step in model_test.go.
type modelLock struct {
	lacks  string // a rule that it does without: see modelRules
	micros int64  // the server's clock
	now    int64  // the same in ms
	deaf   map[string]bool
	unseen int64    // until when they may hear though that is not seen
	spared int      // grants that they had for that
	sent   []string // messages: "client text"

	kind   string
	token  int64
	holder string // owner of the exclusive grant
	grants map[string]*storedGrant
	queue  []*storedWaiter     // by place
	byName map[string][]string // named owners' nonces in the queue
	looks  []string            // nonces of an owner that holds now, who are to be told
	ended  []modelEnded
	rests  int64  // until when the name is taken, once the grant has ended
	rester string // of that nonce; "": it is not
	restOp int64  // by that request of it
	due    int64  // when the first of them may be forgotten, as noted; 0: there is none
	modelBranches

	granted []modelGranted       // by the running script, and not told yet
	several bool                 // sessions hold together, or have: none is alone in its record
	asking  map[string]*[3]int64 // of requests that the running script answers
}

type modelGranted struct {
	client, nonce, owner, text, run string
}

type modelEnded struct {
	nonce string
	until int64
}

type modelRequest struct {
	nonce, owner, mode    string
	named                 bool
	op, ttl, block, place int64
	rest                  string // of the name after it, as it is said
	weight, permits       int64  // of a semaphore
}

func isShared(kind string) bool { return strings.HasSuffix(kind, "rw") }

func (m *modelLock) begin(micros int64) {
	m.micros, m.now = micros, micros/1000
	m.sent, m.granted, m.asking = nil, nil, map[string]*[3]int64{}
}

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
	m.several = (m.held() || m.lingers) && (m.several || m.grants[owner] == nil || len(m.grants[owner].sessions) < len(g.sessions) || len(m.grants) > 1)
	g.judgeMode()
	m.grants[owner] = g
	if g.mode == "w" {
		m.holder = g.root(owner)
	}
	m.count(owner, g.via)
	m.stir(owner)
	if len(g.via) > 0 {
		m.census["entrances"]++
	}
}

// judgeMode notes whether any of a grant's sessions writes.
func (g *storedGrant) judgeMode() {
	switch {
	case g.writes() > 0:
		g.mode = "w"
	case g.mode == "w" || g.mode == "":
		g.mode = "r"
		if g.weight > 0 {
			g.mode = "s"
		}
	}
}

// set stores what is left of a grant, or what has changed in it.
func (m *modelLock) set(owner string, g *storedGrant) {
	via := g.via
	if before := m.grants[owner]; before != nil {
		via = before.via
	}
	g.judgeMode()
	if m.grants[owner] = g; len(g.sessions) == 0 {
		delete(m.grants, owner)
	}
	m.count(owner, via)
	for name, g := range m.grants {
		if g.writes() > 0 && g.root(name) == m.holder {
			return
		}
	}
	m.holder = ""
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
	for _, s := range m.sessions() {
		if s.expiry <= m.now {
			m.remove(s.owner, s.client, s.nonce)
		}
	}
}

// blocked is until when a writer cannot hold, or 0.
func (m *modelLock) blocked() (until int64) {
	if m.rests > m.now {
		until = m.rests
	}
	return max(until, m.leased())
}

// leased is until when somebody holds, or 0.
func (m *modelLock) leased() (until int64) {
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
	if m.lacks != "a grant is in the counter" {
		m.token = high
	}
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

// drop ends the wait of a nonce. Those behind it may be let in where it waited.
func (m *modelLock) drop(nonce string) {
	if q := m.waiter(nonce); q != nil {
		m.takeOut(q)
		m.stir(room.Lineage(q.owner)[1:]...)
	}
}

func (m *modelLock) takeOut(q *storedWaiter) {
	m.queue = slices.DeleteFunc(m.queue, func(o *storedWaiter) bool { return o == q })
	m.byName[q.owner] = slices.DeleteFunc(m.byName[q.owner], func(n string) bool { return n == q.nonce })
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

// want tells those who hold that somebody waits. Who is granted the lock by the same script hears it with that.
func (m *modelLock) want(q *storedWaiter) {
	for _, s := range m.sessions() {
		granted := slices.ContainsFunc(m.granted, func(g modelGranted) bool { return g.nonce == s.nonce })
		if s.client != "-" && s.expiry > m.now && !granted && m.wanting(s.owner) == 1 && !room.Descends(q.owner, s.owner) {
			m.tell(s.client, "wanted "+s.nonce)
		}
	}
}

// wanted is how an answer that grants says that others wait.
func (m *modelLock) wanted(owner string) string {
	if m.wanting(owner) > 0 {
		return "+"
	}
	return ""
}

// end is the last step of a script that changes the lock.
func (m *modelLock) end() {
	for _, g := range m.granted {
		wanted := ""
		if m.wanting(g.owner) > strings.Count(g.run, " ") {
			wanted = " +"
		}
		m.tell(g.client, g.text+wanted+g.run)
	}
	if m.due > 0 && m.due <= m.now {
		m.forget()
	}
	m.several, m.lingers = m.several && m.held(), false
	if m.rests == 0 {
		m.rester, m.restOp = "", 0
	}
	m.branches = m.branches && len(m.queue) > 0
	if !m.branches {
		clear(m.stirred)
	}
	if !m.crowd() {
		m.unseen = 0
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

// crowd reports whether there is more than one session that holds alone: who may touch
// one key only can say nothing then.
func (m *modelLock) crowd() bool { return len(m.queue) > 0 || m.unusual() }

// unusual reports whether there is any of what a statement of one session knows nothing of.
func (m *modelLock) unusual() bool {
	return m.several || len(m.ended) > 0 || m.rester != "" || m.branches
}

func (g *storedGrant) writes() (n int64) {
	for _, s := range g.sessions {
		n += s.writes
	}
	return n
}

// text is all that can be seen of the lock: what is dead does not count.
func (s stored) text(now int64) string {
	var parts []string
	for owner, g := range s.live(now) {
		sorted := slices.SortedFunc(slices.Values(g.sessions), func(a, b storedSession) int { return strings.Compare(a.nonce, b.nonce) })
		parts = append(parts, fmt.Sprintf("%s: %s %d-%d %v weighs %d by %v", owner, g.mode, g.low, g.high, sorted, g.weight, g.via))
	}
	slices.Sort(parts)
	for _, q := range s.queue {
		if q.expiry > now {
			parts = append(parts, fmt.Sprintf("waits %s %s %s %q op %d at %d until %d for %d named %v weighs %d of %d",
				q.nonce, q.client, q.mode, q.owner, q.op, q.place, q.expiry, q.block, q.named, q.weight, q.permits))
		}
	}
	if s.rests > now {
		parts = append(parts, fmt.Sprintf("rests until %d after %s by %d", s.rests, s.rester, s.restOp))
	}
	if s.unseen > now {
		parts = append(parts, fmt.Sprint("unseen until ", s.unseen))
	}
	return strings.Join(append(parts, fmt.Sprintf("kind %s token %d", s.kind, s.token)), "\n")
}

func (m *modelLock) text() string {
	s := stored{kind: m.kind, token: m.token, holder: m.holder, grants: map[string]storedGrant{}, rests: m.rests, rester: m.rester, restOp: m.restOp, unseen: m.unseen}
	for owner, g := range m.grants {
		c := *g
		c.by = g.root(owner)
		s.grants[owner] = c
	}
	for _, q := range m.queue {
		s.queue = append(s.queue, *q)
	}
	return s.text(m.now)
}
