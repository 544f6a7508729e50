package redisson

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/renewal"
	"github.com/relock-go/relock/internal/transport"
)

// mostHolds bounds the holds of one owner: a reader has a key for each.
const mostHolds = 1000

type ownerKey struct {
	lock, name string
	lockKind   kind
}

// An owner is who holds, as Redisson writes it: our client's ID and a number that looks
// like a thread's. No number is used again, so what arrives late for one that has gone
// meets nobody. Who takes one name as two kinds of lock has two numbers: what it says of the
// one, as it unlocks what it has lost, is not believed of the other.
type owner struct {
	field string
	key   ownerKey // of a named one
	uses  int      // sessions
	past  map[kind]*succession
}

// A succession is the sessions of one owner in one mode, one after the other. They have one
// field in Redis: what is said late of one would be believed of the next.
type succession struct {
	now   *session      // nil: none
	turn  chan struct{} // room for one: who tells Redis of the count
	until clock.Instant // by then no unanswered copy of a request is answered any more
}

// succession needs the client's mu.
func (o *owner) succession(k kind) *succession {
	if o.past == nil {
		o.past = make(map[kind]*succession)
	}
	if o.past[k] == nil {
		o.past[k] = &succession{turn: make(chan struct{}, 1)}
	}
	return o.past[k]
}

// A session is what one owner has of one lock, in one mode: its holds and its calls. The
// client's mu guards it.
type session struct {
	c     *Client
	kind  kind
	names names
	owner *owner
	named bool
	*succession
	task renewal.Task

	holds    []*Hold // not released
	calls    int     // that ask
	top      int     // the largest count that Redis was told
	gone     bool    // takes no more calls
	queued   bool    // may stand in a fair lock's queue
	doubt    bool    // may have what nobody was told of
	renewing bool
	retry    clock.Instant // not before that, after a renewal that failed
	token    int64
}

// session returns the session of a call's owner, which the call has to leave.
func (c *Client) session(w *waiting) (*session, error) {
	l, name := w.lock, w.owner
	c.mu.Lock()
	defer c.mu.Unlock()
	key, o := ownerKey{l.names.key, name, l.kind.ofLock()}, w.as
	if o == nil && name != "" {
		o = c.owners[key]
	}
	if o == nil {
		o = &owner{field: c.id + ":" + strconv.FormatInt(c.numbers.Add(1), 10), key: key}
	}
	succession := o.succession(l.kind)
	if s := succession.now; s != nil { // also where a hold is downgraded that is nobody's: its field is one
		if c.closed || c.draining && len(s.holds) == 0 {
			return nil, relock.ErrClosed
		}
		s.calls++
		return s, nil
	}
	if c.draining {
		return nil, relock.ErrClosed
	}
	s := &session{c: c, kind: l.kind, names: l.names, named: name != "", calls: 1, owner: o, succession: succession}
	s.task.Of = s
	o.uses++
	succession.now = s
	if s.named {
		c.owners[key] = o
	}
	c.sessions[s] = struct{}{}
	return s, nil
}

// leave ends a call's part in a session. One that has no more holds and no more calls is
// over, and Redis is told so where it may think otherwise.
func (c *Client) leave(s *session) {
	c.mu.Lock()
	s.calls--
	undo := s.calls == 0 && len(s.holds) == 0 && !s.gone && (s.doubt || s.queued)
	if s.calls == 0 && len(s.holds) == 0 {
		s.end()
	}
	c.mu.Unlock()
	if undo {
		s.undo()
	}
}

// end takes no more calls. It needs the client's mu.
func (s *session) end() {
	if s.gone {
		return
	}
	s.gone = true
	s.c.watchdog.Drop(&s.task)
	delete(s.c.sessions, s)
	s.now = nil
	if s.owner.uses--; s.named && s.owner.uses == 0 {
		delete(s.c.owners, s.owner.key)
	}
	s.c.notify()
}

// busy says that a call asks, or that a hold is neither released nor lost. It needs the client's mu.
func (s *session) busy() bool {
	return s.calls > 0 || slices.ContainsFunc(s.holds, func(h *Hold) bool { return h.lost == nil })
}

// counted is how many holds Redis counts, as far as is known: one that was lost and has been
// unlocked it does not, though its end has yet to be told. It needs the client's mu.
func (s *session) counted(now clock.Instant) (n int) {
	for _, h := range s.holds {
		if !h.released || h.lost == nil && !h.trust.Over(now) {
			n++
		}
	}
	return n
}

// field is the owner's in the hash.
func (s *session) field() string {
	if s.kind == writing {
		return s.owner.field + ":write"
	}
	return s.owner.field
}

// keys are those of the lock, and of so many of a reader's holds.
func (s *session) keys(holds int) []string {
	switch s.kind {
	case fair:
		return []string{s.names.key, s.names.queue(), s.names.deadlines()}
	case fenced:
		return []string{s.names.key, s.names.token()}
	case reading:
		return append([]string{s.names.key}, s.names.read(s.owner.field, holds)...)
	}
	return []string{s.names.key}
}

// acquireCall asks for a hold more. after is server time in ms.
func (s *session) acquireCall(count int, lease time.Duration, after int64, wait time.Duration, queue bool) transport.Call {
	args := []any{s.field(), count, lease.Milliseconds(), after}
	switch s.kind {
	case fair:
		args = append(args, wait.Milliseconds(), map[bool]int{true: 1, false: 0}[queue], s.c.publish, s.names.channel(s.kind))
	case writing:
		args = append(args, s.owner.field)
	}
	return transport.Call{Script: acquireScripts[s.kind], Keys: s.keys(count), Args: args}
}

// releaseCall states how many holds are left of so many.
func (s *session) releaseCall(count, top int) transport.Call {
	args := []any{s.field(), count, s.c.publish, s.names.channel(s.kind)}
	switch s.kind {
	case fair:
		args = append(args, s.c.cfg.fairWait.Milliseconds())
	case reading, writing:
		args = append(args, s.names.tag)
	}
	return transport.Call{Script: releaseScripts[s.kind], Keys: s.keys(top), Args: args}
}

func (s *session) renewCall(lease time.Duration) transport.Call {
	keys := []string{s.names.key}
	if s.kind == reading {
		keys = s.keys(len(s.holds))
	}
	return transport.Call{Script: renewScript, Keys: keys, Args: []any{s.field(), lease.Milliseconds()}}
}

// An answer is what an acquire came to.
type answer struct {
	code  int64
	rest  time.Duration // of the lease; or until asking again is of use, negative if unknown
	now   int64         // the server's clock, in ms
	token int64
}

func readAnswer(raw []any) (answer, error) {
	var n [4]int64
	if len(raw) != len(n) {
		return answer{}, fmt.Errorf("redisson: bug: an answer of %d values", len(raw))
	}
	for i, v := range raw {
		x, ok := v.(int64)
		if !ok {
			return answer{}, fmt.Errorf("redisson: bug: an answer with %v", v)
		}
		n[i] = x
	}
	return answer{n[0], time.Duration(n[1]) * time.Millisecond, n[2], n[3]}, nil
}
