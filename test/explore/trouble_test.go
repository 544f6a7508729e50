package explore_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
)

// Trouble that callers make, and that a server's configuration makes: goroutines
// that share a handle and do not unlock what is lost, hooks that panic, owners'
// names that belong to somebody else's hold, crowds under one name, and
// subscriptions that cannot be had.
type trouble struct {
	shares bool // handles
	upsets bool // in hooks
	lends  bool // owners' names
	crowds bool // under one name
	bars   bool // subscriptions

	branches bool // owners are branches of one flow
}

// decodeTrouble is part of decodeSetup.
func decodeTrouble(n uint32) trouble {
	return trouble{shares: n%2 == 1, upsets: n/2%2 == 1, lends: n/4%2 == 1, crowds: n/8%4 == 3, bars: n/32%4 == 3, branches: n/128%3 == 2}
}

func (t trouble) String() string {
	var b strings.Builder
	for i, is := range []bool{t.shares, t.upsets, t.lends, t.crowds, t.bars, t.branches} {
		if is {
			b.WriteString([]string{" shares", " upsets", " lends", " crowds", " bars", " branches"}[i])
		}
	}
	return "trouble:" + b.String()
}

// trouble decides which of it a call makes.
func (w *world) trouble(a *wish, n int) {
	a.shares = w.setup.shares && n%4 != 0
	a.hangs = a.shares && n/4%4 == 0
	if a.hangs {
		a.what += " and hangs"
	}
	switch kind := n / 4 % 8; {
	case w.setup.upsets && kind >= 5:
		a.upset = []string{"waiting: panic", "acquired: exit", "acquired: panic"}[kind-5]
		a.what += " (" + a.upset + ")"
	case w.setup.lends && kind >= 3 && kind < 5:
		w.borrow(a, n)
	}
}

// borrow names the owner of a call as a hold calls its own, that has no name.
func (w *world) borrow(a *wish, n int) {
	var lenders []*holding
	for _, h := range w.kept() {
		if h.owner == "" && h.hold.Err() == nil {
			lenders = append(lenders, h)
		}
	}
	if h, ok := pick(lenders, n); ok {
		a.lent, a.name, a.owner = true, h.name, h.hold.Owner()
		w.census.count("names of anonymous holds lent")
	}
}

// errUpset is what becomes of a call whose hook does not return.
var errUpset = errors.New("a hook has not returned")

// upsetKey is under which a call's context says what its hooks do.
type upsetKey struct{}

// hooks are those of every client: they do what the call's context says.
func (w *world) hooks() relock.Hooks {
	upset := func(when string) func(context.Context, relock.Event) {
		return func(ctx context.Context, _ relock.Event) {
			switch ctx.Value(upsetKey{}) {
			case when + ": panic":
				panic(errUpset)
			case when + ": exit":
				runtime.Goexit()
			}
		}
	}
	return relock.Hooks{Waiting: upset("waiting"), Acquired: upset("acquired")}
}

// crowd starts many calls of one owner, once in a schedule.
func (w *world) crowd(n int) bool {
	p, ok := pick(w.alive(), n)
	if !ok || !w.setup.crowds || w.crowded {
		return false
	}
	w.crowded = true
	w.census.count("crowds")
	for i := range 12 + n/8%20 {
		w.start(&wish{
			by: p, name: w.names[n/512%len(w.names)], ttl: w.setup.ttl, wait: -1, owner: "crowd", crowd: true,
			read: w.setup.shared() && (n/1024%2 == 0 || i%2 == 0),
		})
		synctest.Wait()
		w.fly(func(*flight) bool { return true }) // names what has come, in this order
	}
	return true
}

// bar refuses a process its subscription from now on, and may cut the one it has.
func (w *world) bar(n int) bool {
	p, ok := pick(w.alive(), n)
	if !ok || !w.setup.bars || p.barred {
		return false
	}
	w.say("p%d cannot subscribe any more", p.index)
	w.hurt("barred subscriptions")
	w.setBarred(p, true)
	if n/8%2 == 0 {
		for _, e := range p.ears {
			e.cut()
		}
	}
	return true
}

// unbar lets one subscribe again.
func (w *world) unbar(n int) bool {
	for i := range w.procs {
		if p := w.procs[(n+i)%len(w.procs)]; p.barred && !p.dead {
			w.say("p%d can subscribe again", p.index)
			w.setBarred(p, false)
			return true
		}
	}
	return false
}

func (w *world) setBarred(p *process, barred bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p.barred = barred
}

// worked checks that whatever Redis keeps for a process, a call of it has: a hold
// that nobody knows of, or that waits behind one that is not unlocked, would be
// renewed for ever and keep all others out.
func (w *world) worked() {
	if w.wrong != "" || !w.suspicious() {
		return
	}
	for _, h := range w.kept() {
		if h.hangs && w.setup.risk > 0 && h.hold.Err() == nil {
			w.remove(w.alive()[0], h.name) // as an operator does who sees that
			w.pump()
		}
	}
	w.live(4*w.setup.ttl + 31*time.Microsecond) // what nobody renews is over by then
	if w.wrong != "" {
		return
	}
	has := map[string]bool{}
	for _, h := range w.holds {
		has[rig.Nonce(h.hold)] = has[rig.Nonce(h.hold)] || h.state < 2 && (h.state == 1 || h.hold.Err() == nil)
	}
	now := time.Now().UnixMilli()
	for name, s := range w.look() {
		for nonce, owner := range s.holding(now) {
			if !has[nonce] {
				w.violate("%s is kept for %s, and no call has that hold: %s", name, owner, nonce)
			}
		}
	}
}

// suspicious says that somebody has a hold, or had one, and does not work under it.
func (w *world) suspicious() bool {
	return slices.ContainsFunc(w.calls, func(a *wish) bool { return a.ended && errors.Is(a.err, errUpset) }) ||
		slices.ContainsFunc(w.kept(), func(h *holding) bool { return h.hangs || h.shares && h.hold.Err() != nil })
}

// steep is how many commands a script may run for each waiter and session that it
// meets: more, and a crowd costs its square.
const (
	steepBase = 60
	steepEach = 16
)

// judgeCost checks how many commands a script has run.
func (w *world) judgeCost(f *flight, before map[string]stored, cost int) {
	met := f.levels()
	for _, s := range before {
		for _, q := range s.queue {
			met += levels(q.owner)
		}
		for owner, g := range s.grants {
			met += len(g.sessions) * levels(owner)
		}
	}
	if limit := steepBase + steepEach*met; cost > limit {
		w.violate("a script costs more than its share: %s ran %d commands, with %d waiters, sessions and requests", f.script, cost, met)
	}
}
