// Package ledger decides which statements Redis gets about the holds of one session. Each statement says everything
// about all of them, so a lost, late or repeated statement needs no special case.
//
// The package has no clock, context, goroutine or mutex. Its caller sends the statements and reports the answers. A
// Ledger is not safe for concurrent use.
package ledger

import (
	"slices"
	"time"
)

// Counts are numbers of holds, by mode.
type Counts struct{ Writes, Reads uint32 }

// One returns the counts of one hold.
func One(read bool) Counts {
	if read {
		return Counts{Reads: 1}
	}
	return Counts{Writes: 1}
}

// Total returns the number of all holds.
func (n Counts) Total() int { return int(n.Writes) + int(n.Reads) }

// And returns the sum of n and m.
func (n Counts) And(m Counts) Counts { return Counts{n.Writes + m.Writes, n.Reads + m.Reads} }

// Less returns n minus m. No count of m may be larger than the same count of n.
func (n Counts) Less(m Counts) Counts { return Counts{n.Writes - m.Writes, n.Reads - m.Reads} }

// A Wish is what one call wants the next statement to say.
type Wish struct {
	More Counts // the holds that the call adds

	// The terms that the call needs. A wish without a lease is of a call that gives up holds, or that waits until Redis
	// knows what others have changed. Replicas need not acknowledge that.
	Lease    time.Duration
	Replicas int
	Timeout  time.Duration
	// LeaseMayStay: the call needs no new lease, because the present one is renewed in time anyway.
	LeaseMayStay bool

	op int64 // of the first statement that includes the wish; 0: none
}

// A Ledger compares what Redis must know with what Redis knows. Its zero value has no holds.
type Ledger struct {
	// Reserved are holds that the session keeps for calls that have not begun them yet.
	Reserved Counts
	// Meant are the counts of the newest statement, answered or not: Redis may have them. Told are those of the newest
	// answered statement, or of the grant if there was none since: Redis had them. Only the ledger writes them.
	Meant, Told Counts

	outer, local Counts // the holds that Redis must know of, and the nested ones of which it is not told: see Add
	wishes       []*Wish
	coming       Counts // the holds that the wishes add
	stated       int64  // op of the newest statement
	answered     int64  // op of the newest answered statement
	proven       int64  // op of the newest statement that enough replicas have
}

// Granted records a grant for n holds. Redis has exactly these now: a wait on a condition has given up all others.
func (l *Ledger) Granted(n Counts) { l.Meant, l.Told = n, n }

// Add records holds that were made. A local hold is nested in an outer one of the same mode. Redis is not told of it
// while the outer one lasts.
func (l *Ledger) Add(n Counts, local bool) {
	if local {
		l.local = l.local.And(n)
	} else {
		l.outer = l.outer.And(n)
	}
}

// Drop records that holds have ended.
func (l *Ledger) Drop(n Counts, local bool) {
	if local {
		l.local = l.local.Less(n)
	} else {
		l.outer = l.outer.Less(n)
	}
}

// Wish adds w to all following statements, until Withdraw.
func (l *Ledger) Wish(w *Wish) {
	l.wishes = append(l.wishes, w)
	l.coming = l.coming.And(w.More)
}

// Withdraw removes a wish that was fulfilled or that failed.
func (l *Ledger) Withdraw(w *Wish) {
	l.wishes = slices.DeleteFunc(l.wishes, func(other *Wish) bool { return other == w })
	l.coming = l.coming.Less(w.More)
}

// Strictest returns the most replicas that any wish asks for, and the longest time for them.
func (l *Ledger) Strictest() (replicas int, timeout time.Duration) {
	for _, w := range l.wishes {
		replicas, timeout = max(replicas, w.Replicas), max(timeout, w.Timeout)
	}
	return replicas, timeout
}

// Needs returns the counts that Redis must know: the holds that exist and those about to be made. If the outer holds of
// a mode have ended, all its local holds together count as one.
func (l *Ledger) Needs() Counts {
	n := l.Reserved.And(l.outer).And(l.coming)
	n.Writes = max(n.Writes, min(l.local.Writes, 1))
	n.Reads = max(n.Reads, min(l.local.Reads, 1))
	return n
}

// Expects reports whether any call is about to make a hold.
func (l *Ledger) Expects() bool { return l.Reserved.And(l.coming) != Counts{} }

// Existing returns the counts of the existing holds that Redis must know: Needs without those about to be made.
func (l *Ledger) Existing() Counts {
	n := l.outer
	n.Writes = max(n.Writes, min(l.local.Writes, 1))
	n.Reads = max(n.Reads, min(l.local.Reads, 1))
	return n
}

// Settled reports whether Redis has answered the newest statement, so that no earlier one can still take effect. An
// answered older statement with the same counts is not enough: a statement between the two may still be on its way.
func (l *Ledger) Settled() bool { return l.answered == l.stated }

// Knows reports whether Redis knows exactly what it must know.
func (l *Ledger) Knows() bool { return l.Settled() && l.Told == l.Needs() }

// A Step is what to do next.
type Step int

// The steps.
const (
	Nothing Step = iota // Redis already knows what it must know
	Say                 // send a statement
	End                 // nothing is needed any more: release the grant
)

// Next returns what to do so that w is fulfilled, or, if w is nil, so that Redis knows everything. A call with a wish
// never ends the grant: the call that ended the last hold does that.
func (l *Ledger) Next(w *Wish) Step {
	switch {
	case w != nil && w.op != 0 && w.op <= l.proven:
		return Nothing // another call's statement included w
	case (w == nil || w.Lease == 0) && l.Knows():
		return Nothing
	case l.Needs() != Counts{}:
		return Say
	case w == nil:
		return End
	}
	return Nothing
}

// A Statement tells Redis what a session holds from now on.
type Statement struct {
	Op int64 // Redis ignores a statement whose op is not larger than the last one it has seen
	Counts
	Lease        time.Duration // the longest lease that a wish asks for; 0: the lease does not change
	Least        time.Duration // the shortest lease that a wish asks for; 0: none asks for one
	LeaseMayStay bool          // no wish needs a new lease, because the present one is renewed in time anyway
	// Opens: the last write hold has ended and read holds go on, so other readers may now hold too.
	Opens bool
}

// State returns a statement of everything that Redis must know. op must be larger than that of any earlier one.
func (l *Ledger) State(op int64) Statement {
	st := Statement{Op: op, Counts: l.Needs(), LeaseMayStay: true}
	for _, w := range l.wishes {
		if w.op == 0 {
			w.op = op
		}
		st.Lease = max(st.Lease, w.Lease)
		if w.Lease > 0 && (st.Least == 0 || w.Lease < st.Least) {
			st.Least = w.Lease
		}
		st.LeaseMayStay = st.LeaseMayStay && (w.LeaseMayStay || w.Lease == 0)
	}
	st.Opens = st.Writes == 0 && l.Told.Writes > 0
	l.Meant, l.stated = st.Counts, op
	return st
}

// Answered records that Redis has answered a statement. proven says that as many replicas have it as any wish asks for.
func (l *Ledger) Answered(st Statement, proven bool) {
	if st.Op < l.answered {
		return // a newer statement has been answered already
	}
	l.answered, l.Told = st.Op, st.Counts
	if proven {
		l.proven = st.Op
	}
}
