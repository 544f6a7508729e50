// Package ledger decides what to tell Redis about the holds that share one grant. It makes what Redis knows
// equal to what the holds need, one statement at a time. Each statement covers all of them, so a lost, late
// or repeated statement needs no special case.
//
// The package has no clock, context, goroutine or mutex: its caller acts and reports the results. A Ledger is
// not safe for concurrent use.
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

// Less returns n without m, which must be part of n.
func (n Counts) Less(m Counts) Counts { return Counts{n.Writes - m.Writes, n.Reads - m.Reads} }

// A Wish is what one call wants Redis to know.
type Wish struct {
	More Counts // the holds that the call adds to those of the others

	// What a statement with this wish asks for. Without a lease, the call gives up holds, or only waits until
	// others are given up. That needs no acknowledgement by replicas.
	Lease    time.Duration
	Replicas int
	Timeout  time.Duration
	// Kept: the lease may stay as it is if it is renewed in time anyway.
	Kept bool

	op int64 // of the first statement that includes it; 0: none
}

// A Ledger is what Redis must know and what it does know. Its zero value has no holds.
type Ledger struct {
	// Reserved are holds that were granted, and that their calls have not made yet.
	Reserved Counts

	outer, local Counts // holds that Redis must know of, and the others
	wishes       []*Wish
	coming       Counts // the holds that the wishes add
	meant        Counts // the counts of the newest statement
	stated       int64  // its op
	told         Counts // the counts of the newest answered statement
	answered     int64  // its op
	proven       int64  // op of the newest statement that enough replicas have
}

// Granted records that Redis has granted the reserved holds.
func (l *Ledger) Granted() { l.meant, l.told = l.Reserved, l.Reserved }

// Add records holds that were made. A local hold stands behind an outer one of the same mode. Redis is not
// told of it while the outer one lasts.
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

// Wish adds a call that needs Redis to know something, until Withdraw.
func (l *Ledger) Wish(w *Wish) {
	l.wishes = append(l.wishes, w)
	l.coming = l.coming.And(w.More)
}

// Withdraw removes a wish that was fulfilled or has failed.
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

// Needs returns the counts that Redis must know: the holds that exist and those about to be made. Local holds
// count as one if the hold that they stood behind has ended.
func (l *Ledger) Needs() Counts {
	n := l.Reserved.And(l.outer).And(l.coming)
	n.Writes = max(n.Writes, min(l.local.Writes, 1))
	n.Reads = max(n.Reads, min(l.local.Reads, 1))
	return n
}

// Expects reports whether a call is about to make a hold.
func (l *Ledger) Expects() bool { return l.Reserved.And(l.coming) != Counts{} }

// Kept returns the counts of the existing holds that Redis must know.
func (l *Ledger) Kept() Counts {
	n := l.outer
	n.Writes = max(n.Writes, min(l.local.Writes, 1))
	n.Reads = max(n.Reads, min(l.local.Reads, 1))
	return n
}

// Resume records that Redis has granted these counts again, to a request with that op.
func (l *Ledger) Resume(n Counts, op int64) {
	l.meant, l.told = n, n
	l.stated, l.answered = op, op
}

// Meant returns the counts of the newest statement, answered or not. Redis may have them.
func (l *Ledger) Meant() Counts { return l.meant }

// Told returns the counts of the newest answered statement.
func (l *Ledger) Told() Counts { return l.told }

// Settled reports whether Redis has answered the newest statement, so that no other one can take effect. It
// is not enough that an older answered one has the same counts: a statement between the two may still be on
// its way.
func (l *Ledger) Settled() bool { return l.answered == l.stated }

// Knows reports whether Redis knows exactly what it must know.
func (l *Ledger) Knows() bool { return l.Settled() && l.told == l.Needs() }

// A Step is what to do next.
type Step int

// The steps.
const (
	Nothing Step = iota // Redis knows it already
	Say                 // send a statement
	End                 // nothing is needed any more: release the grant
)

// Next returns what to do so that Redis knows w, or everything if w is nil. A call with a wish never ends the
// grant: the call that ended the last hold does.
func (l *Ledger) Next(w *Wish) Step {
	switch {
	case w != nil && w.op != 0 && w.op <= l.proven:
		return Nothing // another call's statement included it
	case (w == nil || w.Lease == 0) && l.Knows():
		return Nothing
	case l.Needs() != Counts{}:
		return Say
	case w == nil:
		return End
	}
	return Nothing
}

// A Statement is what Redis is told.
type Statement struct {
	Op int64 // Redis ignores a statement whose op is not larger than the last one it has seen
	Counts
	Lease time.Duration // the least lease; 0: the lease does not change
	Least time.Duration // the shortest lease that a wish in it asks for; 0: none does
	Kept  bool          // the lease may stay as it is if it is renewed in time anyway
	// Opens: the last write hold has ended and read holds go on, so that others may read too.
	Opens bool
}

// State returns a statement of everything that Redis must know. op must be larger than those of all earlier
// statements.
func (l *Ledger) State(op int64) Statement {
	st := Statement{Op: op, Counts: l.Needs(), Kept: true}
	for _, w := range l.wishes {
		if w.op == 0 {
			w.op = op
		}
		st.Lease = max(st.Lease, w.Lease)
		if w.Lease > 0 && (st.Least == 0 || w.Lease < st.Least) {
			st.Least = w.Lease
		}
		st.Kept = st.Kept && (w.Kept || w.Lease == 0)
	}
	st.Opens = st.Writes == 0 && l.told.Writes > 0
	l.meant, l.stated = st.Counts, op
	return st
}

// Answered records that Redis has a statement. proven: as many replicas have it as any wish asks for.
func (l *Ledger) Answered(st Statement, proven bool) {
	if st.Op < l.answered {
		return // an older answer says nothing new
	}
	l.answered, l.told = st.Op, st.Counts
	if proven {
		l.proven = st.Op
	}
}
