package explore_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/relock-go/relock/internal/room"
)

// modelBranches is what the model of a lock knows of branches.
type modelBranches struct {
	branches bool              // a branch has been queued since the queue was empty
	stirred  map[string]bool   // owners at whose holds more may be let in, which no script has done yet
	lingers  bool              // the last of several has gone, and the script still takes the next for one of several
	census   map[string]int    // what has happened
	ousts    bool              // who entered through a hold that has ended is to be told
	counts   map[string][2]int // sessions of an owner, and those of them that write, as last counted
}

// An entrance is what a request would hold beside: what its owner holds, or the nearest ancestor that does.
type entrance struct {
	owner, mode    string
	grant          *storedGrant
	below, writers int // sessions that entered through it, and those of them that write
}

// root is the owner whose grant an owner's sessions are part of.
func (g *storedGrant) root(owner string) string {
	if n := len(g.via); n > 0 {
		return g.via[n-1]
	}
	return owner
}

// over reports whether a session has nothing any more, because it has ended, as the scripts see it.
func (m *modelLock) over(g *storedGrant, writes bool) bool {
	return m.lacks != "a branch has nothing when the hold that it entered has ended" && m.hasEnded(g, writes)
}

// hasEnded reports whether a hold through which a grant was entered has ended, or for a session that writes only reads.
func (m *modelLock) hasEnded(g *storedGrant, writes bool) bool {
	return slices.ContainsFunc(g.via, func(name string) bool {
		above := m.grants[name]
		return above == nil || above.low != g.low || writes && above.writes() == 0
	})
}

// below counts the sessions that entered through an owner's hold, and those of them that write.
func (m *modelLock) below(name string) (sessions, writers int) {
	for _, g := range m.grants {
		if slices.Contains(g.via, name) {
			sessions += len(g.sessions)
			writers += g.writers()
		}
	}
	return sessions, writers
}

func (g *storedGrant) writers() (n int) {
	for _, s := range g.sessions {
		n += int(min(s.writes, 1))
	}
	return n
}

// nearest is what an owner holds, or its nearest ancestor that does.
func (m *modelLock) nearest(owner string) *entrance {
	for _, name := range room.Lineage(owner) {
		g := m.grantOf(name)
		if strings.HasPrefix(name, "~") || g == nil || len(g.sessions) == 0 || m.over(g, false) {
			continue
		}
		by := &entrance{owner: name, mode: g.mode, grant: g}
		if g.mode == "w" && m.over(g, true) {
			by.mode = "r"
		}
		by.below, by.writers = m.below(name)
		return by
	}
	return nil
}

// remains reports whether something of an earlier hold of an owner is in the way still.
func (m *modelLock) remains(owner string) bool {
	if m.lacks == "an owner waits for what is left of its ended hold" {
		return false
	}
	if g := m.grants[owner]; g != nil {
		return m.over(g, false)
	}
	left, _ := m.below(owner)
	return left > 0
}

// allows reports whether a request may hold beside those who hold through by.
func (by *entrance) allows(owner, mode string, apart bool) bool {
	switch {
	case mode == "w" && by.mode != "w":
		return false
	case by.owner == owner, by.below == 0, !apart:
		return true
	}
	return mode == "r" && by.writers == 0
}

// enter answers a branch whose ancestor holds: it waits for others that have entered there, and who came before it.
func (m *modelLock) enter(kind, client string, queue bool, r modelRequest, by *entrance, waiting *storedWaiter) modelAnswer {
	if !queue {
		return modelAnswer{code: -5}
	}
	if by.mode == "r" && r.mode == "w" {
		m.drop(r.nonce)
		return modelAnswer{code: -6}
	}
	m.asking[r.nonce] = &[3]int64{}
	behind, _ := m.admit(by.owner, true)
	switch {
	case m.asking[r.nonce][0] != 0:
		return modelAnswer{code: 2}
	case !behind && m.fits(r):
		return m.join(client, r, m.nearest(r.owner))
	case r.place < 0:
		return modelAnswer{code: 3}
	}
	return m.wait(kind, client, r, waiting)
}

// entering is the grant of an owner that enters through by: what it has there already, or what it will have.
func (by *entrance) entering(owner string) *storedGrant {
	if by.owner == owner {
		return by.grant
	}
	g := by.grant
	return &storedGrant{low: g.low, high: g.high, weight: g.weight, via: append([]string{by.owner}, g.via...)}
}

// admit lets in those in the queue that wait to enter through an owner's hold, in order. Who is dead among them is only
// dropped with that, and who may not enter any more is only told, where the hold has changed. It reports whether one
// waits on, and whether any has left the queue.
func (m *modelLock) admit(name string, changed bool) (waits, moved bool) {
	for _, q := range slices.Clone(m.queue) {
		by := m.nearest(q.owner)
		switch {
		case !room.Descends(q.owner, name):
		case q.expiry <= m.now:
			if changed {
				m.drop(q.nonce)
				moved = true
			}
		case by == nil || by.owner != name:
		case by.mode == "r" && q.mode == "w":
			if changed {
				m.tell(q.client, "look "+q.nonce)
			}
		case m.fits(q.request()):
			m.grant(q)
			moved = true
		default:
			return true, moved
		}
	}
	return false, moved
}

// admitBranches lets in all that can enter what an ancestor holds.
func (m *modelLock) admitBranches() {
	if m.lacks == "a branch that waits is let in when another leaves" {
		clear(m.stirred)
		return
	}
	for again := true; again; {
		again = false
		names := maps.Clone(m.stirred)
		for name := range m.grants {
			names[name] = names[name] || false
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			delete(m.stirred, name)
			if by := m.nearest(name); by == nil || by.owner != name {
				continue
			}
			_, moved := m.admit(name, names[name])
			again = again || moved
		}
		again = again || len(m.stirred) > 0
	}
}

// count takes what has changed of an owner's sessions in a grant that branches have entered.
func (m *modelLock) count(owner string, via []string) {
	var now [2]int
	if g := m.grants[owner]; g != nil {
		now = [2]int{len(g.sessions), g.writers()}
	}
	before := m.counts[owner]
	if m.counts[owner] = now; now == before {
		return
	}
	below, writers := m.below(owner)
	if below == 0 && len(via) == 0 {
		return
	}
	m.stir(room.Lineage(owner)...)
	m.ousts = m.ousts || below > 0 && now[0] == 0 || writers > 0 && now[1] == 0
}

// stir notes that more may be let in at the holds of these owners.
func (m *modelLock) stir(owners ...string) {
	for _, name := range owners {
		if m.branches {
			m.stirred[name] = true
		}
	}
}

// tellEnded tells those who entered through a hold that has ended. A ticket hears nothing, and nobody trusts it: it
// goes. It reports whether one has.
func (m *modelLock) tellEnded() (dropped bool) {
	if !m.ousts {
		return false
	}
	m.ousts = false
	for _, owner := range slices.Sorted(maps.Keys(m.grants)) {
		g := m.grants[owner]
		for _, s := range slices.Clone(g.sessions) {
			if !m.over(g, s.writes > 0) {
				continue
			}
			if m.census["told that it has ended"]++; s.client != "-" && m.lacks != "a branch is told that the hold it entered has ended" {
				m.tell(s.client, "ended "+s.nonce)
			}
			ticket := s.client == "-" && m.lacks != "a ticket of a branch ends with its ancestor"
			if ticket || m.lacks == "what an ended branch had is in the way until its client knows" {
				m.remove(owner, s.client, s.nonce)
				dropped, m.lingers = true, true
				m.census["tickets that have ended"]++
			}
		}
	}
	return dropped
}

// remove ends one session of an owner.
func (m *modelLock) remove(owner, client, nonce string) {
	if g := m.grants[owner]; g != nil {
		c := *g
		c.sessions = slices.DeleteFunc(slices.Clone(g.sessions), func(s storedSession) bool { return s.client == client && s.nonce == nonce })
		m.set(owner, &c)
	}
}

// wanting is how many wait for the end of what an owner holds: all but its own branches.
func (m *modelLock) wanting(owner string) (n int) {
	for _, q := range m.queue {
		if !room.Descends(q.owner, owner) || m.lacks == "a branch does not wait for the end of its ancestor" {
			n++
		}
	}
	return n
}

// unsettled reports whether a script has anything to settle.
func (m *modelLock) unsettled() bool { return len(m.queue) > 0 || m.changed() }

// changed reports whether a hold has changed at which branches wait, or through which some entered.
func (m *modelLock) changed() bool { return len(m.stirred) > 0 || m.ousts }

// An owned is a session and its owner.
type owned struct {
	storedSession
	owner string
	low   int64
	grant *storedGrant
}

// sessions are all of them, the longest lease first.
func (m *modelLock) sessions() (all []owned) {
	for owner, g := range m.grants {
		for _, s := range g.sessions {
			all = append(all, owned{s, owner, g.low, g})
		}
	}
	slices.SortFunc(all, func(a, b owned) int {
		return cmp.Or(cmp.Compare(b.expiry, a.expiry), strings.Compare(a.nonce, b.nonce))
	})
	return all
}

// branches reports whether the owners of a run are of one family.
func (r *modelRun) branches() bool { return r.steps[0]/10%2 == 1 }

// family is the owner of an actor in such a run.
func (r *modelRun) family(actor int) string {
	all := append(slices.Clone(family), fmt.Sprintf("~anonymous:%d", actor))
	draw := rand.New(rand.NewPCG(uint64(r.steps[0]), uint64(actor))) //nolint:gosec // the same every time
	return all[draw.IntN(len(all))]
}
