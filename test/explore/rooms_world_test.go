package explore_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/room"
)

// A hall is the rooms of one lock in several clients, beside the model of the scripts,
// all in memory: no goroutine, no server and no Lua. What is under way arrives when the
// hall's dice say so, late, twice or never, and time passes only where nothing else happens.
type hall struct {
	urged   map[*room.Hold]bool // have been told that others wait
	dice    *rand.Rand
	setup   hallSetup
	start   clock.Instant
	now     time.Duration // since start
	lock    modelLock
	members []*member
	air     []*roomFlight // requests, replies and messages under way
	dates   []date        // what is due at a time
	holds   []*roomHold
	top     int64 // largest token of a writer
	calm    bool  // nothing is lost any more, and holds end at once
	nonces  int
	wrong   string
	say     func(format string, args ...any) // nil: nobody listens
	seen    map[string]int
	copied  map[string]bool          // nonces by which somebody else than their client has asked
	over    map[string]time.Duration // since when a nonce has nothing, because its ancestor's hold has ended
}

// A hallSetup is what a seed decides before anything happens.
type hallSetup struct {
	kind    string
	members int
	ttl     time.Duration
	risky   bool    // messages are lost, late and repeated, clients stand still and die
	rate    float64 // of the server's clock
	sticky  bool    // most calls ask for a grant that their client may keep
	family  bool    // most calls are of a flow and its branches
	steps   int
}

func (s hallSetup) String() string {
	return fmt.Sprintf("%s lock, %d clients, TTL %v, risky %v, server's clock at %.3f, sticky %v, family %v, %d steps",
		s.kind, s.members, s.ttl, s.risky, s.rate, s.sticky, s.family, s.steps)
}

// A roomFlight is something under way to the server, or from it to a client.
type roomFlight struct {
	to    *member // nil: the server
	run   func()
	what  string
	copy  bool   // it may arrive twice
	nonce string // that it asks for the lock by
}

// A date is something that happens to a client at a time.
type date struct {
	at  time.Duration
	of  *member
	run func()
}

var hallStart = new(clock.Clock).Now()

func newHall(seed uint64, steps int) *hall {
	h := &hall{urged: map[*room.Hold]bool{}, dice: rand.New(rand.NewPCG(seed, 0x5eed)), start: hallStart, seen: map[string]int{}, copied: map[string]bool{}, over: map[string]time.Duration{}} //nolint:gosec // the same every time
	kinds := []string{"plain", "plain", "plain", "fair", "rw"}
	h.setup = hallSetup{
		kind: kinds[h.dice.IntN(len(kinds))], members: 2 + h.dice.IntN(2), ttl: time.Second, risky: h.dice.IntN(4) > 0,
		rate: []float64{0.992, 1, 1.008}[h.dice.IntN(3)], steps: 16 + h.dice.IntN(50),
	}
	h.setup.sticky, h.setup.family = seed%4 == 0 && h.setup.kind != "rw", seed%4 == 3
	if steps > 0 {
		h.setup.steps = steps
	}
	h.lock = newModelLock()
	for i := range h.setup.members {
		m := &member{hall: h, id: fmt.Sprintf("client-%d", i), skew: 1_700_000_000_000}
		m.room.Plain, m.room.Runs, m.room.Shared = h.setup.kind == "plain", h.setup.kind == "fair", h.setup.kind == "rw"
		h.members = append(h.members, m)
	}
	return h
}

func (h *hall) instant() clock.Instant { return h.start.Add(h.now) }

// server is the time by the server's clock, in microseconds.
func (h *hall) server() int64 {
	return 1_700_000_000_000_000 + int64(float64(h.now.Microseconds())*h.setup.rate)
}

func (h *hall) tell(format string, args ...any) {
	if h.say != nil {
		h.say("%10v "+format, append([]any{h.now}, args...)...)
	}
}

func (h *hall) violate(format string, args ...any) {
	if h.wrong == "" {
		h.wrong = fmt.Sprintf(format, args...)
		h.tell("VIOLATION: %s", h.wrong)
	}
}

// later has something happen to a client after d.
func (h *hall) later(of *member, d time.Duration, run func()) {
	h.dates = append(h.dates, date{h.now + d, of, run})
}

// fly sends something that arrives when the dice say so.
func (h *hall) fly(f *roomFlight) { h.air = append(h.air, f) }

// land has one of them arrive, unless its client stands still: then later.
func (h *hall) land(i int) {
	f := h.air[i]
	if f.to != nil && f.to.still > h.now {
		return
	}
	h.air = slices.Delete(h.air, i, i+1)
	if f.to == nil || !f.to.dead {
		h.tell("arrives: %s", f.what)
		f.run()
	}
}

// serve runs a script, and sends its messages.
func (h *hall) serve(script func() []any) []any {
	h.lock.begin(h.server())
	reply := script()
	h.judgeGrants()
	h.noteEnded()
	for _, text := range h.lock.sent {
		client, message, _ := strings.Cut(text, " ")
		for _, m := range h.members {
			if m.id == client && !strings.HasPrefix(message, "echo") {
				h.fly(&roomFlight{to: m, what: m.id + " hears " + message, copy: true, run: func() { m.hear(message) }})
			}
		}
	}
	return reply
}

// next is the earliest date, or -1. Dates of clients that stand still wait for them.
func (h *hall) next() (at time.Duration, which int) {
	which = -1
	for i := range h.dates {
		due := h.dates[i].at
		if m := h.dates[i].of; m != nil {
			due = max(due, m.still)
		}
		if which < 0 || due < at {
			at, which = due, i
		}
	}
	for _, m := range h.members {
		for _, a := range m.known {
			if due := max(a.due, m.still); a.timer && !m.dead && (which < 0 && which != -2 || due < at) {
				at, which = due, -2
			}
		}
	}
	return at, which
}

// pass lets time go on to what is due next, and has it happen.
func (h *hall) pass() bool {
	at, which := h.next()
	if which == -1 {
		return false
	}
	h.now = max(h.now, at)
	h.seen["what was due"]++
	if which >= 0 {
		d := h.dates[which]
		h.dates = slices.Delete(h.dates, which, which+1)
		if d.of == nil || !d.of.dead {
			d.run()
		}
		return true
	}
	for _, m := range h.members {
		for _, a := range slices.Clone(m.known) {
			if a.timer && !m.dead && max(a.due, m.still) <= h.now {
				a.timer = false
				a.fire()
			}
		}
	}
	return true
}

// A member is one client, with its room.
type member struct {
	hall     *hall
	id       string
	room     room.Room
	known    []*roomAcq // that Redis may know
	released []releasedAcq
	calls    []*roomCall
	owners   int
	handles  [handlesOfRooms]room.Handle // two for writing, and two for reading; and the same of each owner of a family
	owed     int                         // lost holds that are to be unlocked
	still    time.Duration               // it stands still until then
	closing  bool
	dead     bool
	skew     int64 // of the server's clock, in ms, as last seen
}

type releasedAcq struct {
	nonce, owner string
	doubt        int64
	ended        bool // and Redis has said so
}

// step is something that happens to the client's room now.
func (m *member) step() *room.Step {
	return &room.Step{
		Now: m.hall.instant(), Server: m.hall.now.Milliseconds() + m.skew, Draining: m.closing,
		Pause: func(fails int, most time.Duration) time.Duration {
			return min(time.Duration(fails)*11*time.Millisecond, most)
		},
	}
}

// look is a step that asks which holds are live.
func (m *member) look() *room.Step {
	at := m.step()
	m.room.Judge(at)
	return at
}

// kept says whether the client still knows of the room of a handle that has holds: who unlocks them looks for it.
func (m *member) kept() {
	for i := range m.handles {
		if m.handles[i].Newest() != nil && len(m.known) == 0 && m.owed == 0 {
			m.hall.violate("%s has forgotten the room of holds that are not unlocked", m.id)
		}
	}
}

// done does what has followed from a step.
func (m *member) done(at *room.Step) {
	for i := 0; at.Effect(i) != nil; i++ {
		e := at.Effect(i)
		switch e.Do {
		case room.Timer:
			a := e.Of.Of.(*roomAcq)
			a.timer = !e.At.IsZero()
			a.due = e.At.Sub(m.hall.start) - e.Grain
		case room.Forget:
			a := e.Of.Of.(*roomAcq)
			if m.forget(a); a.Session == nil && !releases(at, i, e.Of) { // Redis cannot know it
				m.released = append(m.released, releasedAcq{a.nonce, a.owner, 0, true})
			}
		case room.Lose:
			m.owed++
			m.hall.loses(m, e)
		case room.LossEnded:
			m.owed--
		case room.TellWanted:
			if m.hall.urged[e.Hold] || !e.Hold.Wanted {
				m.hall.violate("a hold is told twice that it is wanted")
			}
			m.hall.urged[e.Hold] = true
		case room.Wake:
			c := e.Who.(*roomCall)
			c.waking = true
			m.hall.later(m, time.Duration(m.hall.dice.IntN(3))*50*time.Microsecond, c.awake)
		case room.Release:
			e.Of.Of.(*roomAcq).release()
		case room.Tell:
			e.Of.Of.(*roomAcq).tell(nil, nil)
		case room.Disown:
			m.disown(e.Nonce)
		}
		m.kept()
	}
	m.hall.judge()
}

// releases reports whether a later effect of a step releases an acquisition.
func releases(at *room.Step, i int, a *room.Acquisition) bool {
	for ; at.Effect(i) != nil; i++ {
		if e := at.Effect(i); e.Do == room.Release && e.Of == a {
			return true
		}
	}
	return false
}

func (m *member) find(nonce string) *roomAcq {
	for _, a := range m.known {
		if a.nonce == nonce {
			return a
		}
	}
	return nil
}

func (m *member) forget(a *roomAcq) {
	m.known = slices.DeleteFunc(m.known, func(o *roomAcq) bool { return o == a })
}

// hear takes a message.
func (m *member) hear(text string) {
	verb, rest, _ := strings.Cut(text, " ")
	fields := strings.Fields(rest)
	a := m.find(fields[0])
	if a == nil {
		if verb == "grant" {
			m.hall.seen["grants for nobody"]++
			m.disown(fields[0])
		}
		return
	}
	at := m.step()
	switch {
	case verb == "look" && a.Waits():
		a.Entry.Kick(at)
	case verb == "grant" && a.Waits():
		m.hall.seen["grants by message"]++
		run := fields[4:]
		wanted := len(run) > 0 && run[0] == "+"
		if wanted {
			run = run[1:]
		}
		a.Entry.Granted(number(fields[1]), number(fields[2]), number(fields[3]), wanted, m.behind(run), at)
	case verb == "ended":
		if m.hall.seen["ends of an ancestor's hold that were heard"]++; a.Waits() {
			m.hall.seen["ends of an ancestor's hold that overtook the answer"]++
		}
		a.Revoke(errEnded, at)
	case verb == "wanted":
		m.hall.seen["wanted by message"]++
		a.NoteWantedMessage(at)
	}
	m.done(at)
}
