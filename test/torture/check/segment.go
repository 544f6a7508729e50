package check

import (
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

const (
	segmentSize = 64 // operations, and those up to the next instant at which none is open

	// patience is for one segment: most take microseconds, and one of many joins in one
	// second a second with the race detector, which on a busy machine was over five.
	patience = time.Minute
)

// model checks a lock against the specification, with porcupine, in segments:
// where no operation is open the state is known, so that a history can be cut.
func (k *checker) model(s *story) {
	if s.fell || s.crowded() {
		k.report.NotModelled++
		return
	}
	if s.semaphore() {
		k.permits(s)
		return
	}
	st, ops := &state{}, s.ops()
	for _, c := range s.calls {
		if c.acquired != 0 && (c.unknown || s.parted[c.token]) {
			k.report.LeftOut++
		}
	}
	for len(ops) > 0 {
		n := cut(ops, segmentSize)
		k.report.Segments++
		k.report.Operations += n
		if verdict := decide(st, ops[:n]); verdict != porcupine.Ok {
			if s.fellUnseen() {
				k.report.NotModelled++
				return
			}
			k.blame(s, st, ops[:n], verdict)
		}
		st = st.after(ops[:n])
		ops = ops[n:]
	}
}

// crowded says that hundreds of calls are open at any time: a search for their
// order has no end. Who held beside whom, tokens and waits are judged all the same.
func (s *story) crowded() bool { return strings.Contains(s.name, "/crowd") }

// cut is how many operations come before an instant at which none is open.
func cut(ops []op, least int) int {
	open := ops[0].to
	for i, o := range ops {
		if i >= least && o.from > open {
			return i
		}
		open = max(open, o.to)
	}
	return len(ops)
}

// after is the state when all the operations are done, in whatever legal order.
func (st *state) after(ops []op) *state {
	next := &state{token: st.token, holders: slices.Clone(st.holders)}
	var down []*call
	gone := map[*call]bool{}
	for _, o := range ops {
		switch o.deed {
		case take:
			next.token = max(next.token, o.c.token)
			next.holders = append(next.holders, holder{o.c, o.c.read})
		case blip:
			next.token = max(next.token, o.c.token)
		case end:
			gone[o.c] = true
		case downgrade:
			down = append(down, o.c)
		}
	}
	next.holders = slices.DeleteFunc(next.holders, func(h holder) bool { return gone[h.c] })
	for i, h := range next.holders {
		next.holders[i].read = h.read || slices.Contains(down, h.c)
	}
	return next
}

// blame reports the first piece of a segment that cannot be.
func (k *checker) blame(s *story, st *state, ops []op, verdict porcupine.CheckResult) {
	for rest := ops; len(rest) > 0; {
		n := cut(rest, 1)
		if n == len(ops) {
			break
		}
		if v := decide(st, rest[:n]); v != porcupine.Ok {
			ops, verdict = rest[:n], v
			break
		}
		st = st.after(rest[:n])
		rest = rest[n:]
	}
	from, to := ops[0].from, ops[0].to
	for _, o := range ops {
		to = max(to, o.to)
	}
	if verdict == porcupine.Illegal {
		k.violation(s, NoOrder, from, to, "no order of %d operations is legal for a %s lock", len(ops), s.kind())
		return
	}
	k.violation(s, Undecided, from, to, "porcupine could not decide about %d operations within %v", len(ops), patience)
}

// decide asks porcupine about operations that begin in a state.
func decide(st *state, ops []op) porcupine.CheckResult {
	history := make([]porcupine.Operation, len(ops))
	for i := range ops {
		o := &ops[i]
		// An operation that began when another returned is concurrent with it.
		history[i] = porcupine.Operation{ClientId: i, Input: o, Call: 2 * o.from, Return: 2*o.to + 1}
	}
	return porcupine.CheckOperationsTimeout(specification(st), history, patience)
}
