package redistest

import (
	"slices"
	"strings"
	"sync"
)

// ledger matches the frames of a server with the commands of a client. It also finds frames that the server
// sent unasked.
type ledger struct {
	mu      sync.Mutex // protects following fields
	pending []expected // in the order the server answers
	resp3   bool
	pubsub  bool // a subscription was acknowledged

	// channels are the subscriptions asked for, by the command that makes them.
	channels map[string]map[string]struct{}
}

// expected is a command whose reply has not come, or one that never left and
// whose turn comes when all ahead have been answered.
type expected struct {
	name   string
	effect effect
	acks   int  // frames that answer it
	resp3  bool // it asks for RESP3
}

// subscriptions maps the command that makes subscriptions to the one that ends them.
var subscriptions = map[string]string{
	"subscribe":  "unsubscribe",
	"psubscribe": "punsubscribe",
	"ssubscribe": "sunsubscribe",
}

func (e expected) subscribes() bool { return subscriptions[e.name] != "" }

// expect enters a command before it is sent.
func (l *ledger) expect(req request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	name, args := strings.ToLower(req.args[0]), req.args[1:]
	l.pending = append(l.pending, expected{
		name:   name,
		effect: req.verdict.effect,
		acks:   l.acks(name, args),
		resp3:  name == "hello" && len(args) > 0 && args[0] == "3",
	})
}

// acks returns how many frames answer a command: for subscriptions one a channel. Caller holds l.mu.
func (l *ledger) acks(name string, args []string) int {
	for begin, end := range subscriptions {
		if l.channels[begin] == nil {
			l.channels[begin] = map[string]struct{}{}
		}
		have := l.channels[begin]
		switch {
		case name == begin:
			for _, ch := range args {
				have[ch] = struct{}{}
			}
			return len(args)
		case name == end && len(args) == 0: // all subscriptions, and one frame if there are none
			n := max(1, len(have))
			clear(have)
			return n
		case name == end:
			for _, ch := range args {
				delete(have, ch)
			}
			return len(args)
		}
	}
	return 1
}

// head returns the effect of the verdict on the first command without an answer.
func (l *ledger) head() effect {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending) == 0 {
		return pass
	}
	return l.pending[0].effect
}

// match returns the command that f answers, or false if the server sent f unasked.
func (l *ledger) match(f frame) (e expected, answers bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending) == 0 {
		return e, false
	}
	e = l.pending[0]
	if f.kind != '>' && (l.resp3 || !l.pubsub || f.kind != '*') {
		return e, true
	}
	// A push, or its replacement in RESP2, names the command that it answers.
	if len(f.args) == 0 {
		return e, false
	}
	name := strings.ToLower(f.args[0])
	return e, name == e.name || name == "pong" && e.name == "ping"
}

// strike removes the command that f answers, if f is the last of its answers.
func (l *ledger) strike(f frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := &l.pending[0]
	if f.kind != '-' {
		l.resp3 = l.resp3 && e.name != "hello" || e.resp3
		l.pubsub = l.pubsub || e.subscribes()
	}
	e.acks--
	if f.kind == '-' || e.acks == 0 {
		l.pending = slices.Delete(l.pending, 0, 1)
	}
}
