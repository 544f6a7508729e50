// Package ledger decides what Redis is to be told of the holds that share one grant:
// what it was told is made equal to what they need, one statement at a time. A
// statement is of all of them, so a lost, late or repeated one needs no case of its own.
//
// It has no clock, context, goroutine or mutex: whoever uses it acts, and says what
// came of it. A Ledger is not safe for concurrent use.
package ledger

import (
	"slices"
	"time"
)

// Counts are holds, by mode.
type Counts struct{ Writes, Reads uint32 }

// One is one hold.
func One(read bool) Counts {
	if read {
		return Counts{Reads: 1}
	}
	return Counts{Writes: 1}
}

// Total is how many they are.
func (n Counts) Total() int { return int(n.Writes) + int(n.Reads) }

// And is n and m together.
func (n Counts) And(m Counts) Counts { return Counts{n.Writes + m.Writes, n.Reads + m.Reads} }

// Less is n without m, which is part of it.
func (n Counts) Less(m Counts) Counts { return Counts{n.Writes - m.Writes, n.Reads - m.Reads} }

// A Wish is a call that needs Redis to know of it.
type Wish struct {
	More Counts // what it is about to hold, beside what the others have

	// What a statement of it asks for. Without a lease it gives up something, or only
	// waits for what has been given up: that needs nobody's acknowledgement.
	Lease    time.Duration
	Replicas int
	Timeout  time.Duration
	// Kept: the lease may be left as it is where it is renewed in time anyway.
	Kept bool

	op int64 // of the first statement that has it; 0: none
}

// A Ledger is what Redis is to know, and what it does. Its zero value has no holds.
type Ledger struct {
	// Reserved are holds that were granted, and not made by their calls yet.
	Reserved Counts

	outer, local Counts // holds that Redis is to know of, and the others
	wishes       []*Wish
	coming       Counts // the holds that they are for
	meant        Counts // in the newest statement
	stated       int64  // its op
	told         Counts // in the newest that was answered
	answered     int64  // its op
	proven       int64  // op of the newest whose answer was enough for who wished for it
}

// Granted notes that Redis knows of what was reserved: it has granted that.
func (l *Ledger) Granted() { l.meant, l.told = l.Reserved, l.Reserved }

// Add notes holds that were made. Local ones stand behind an outer one of their mode,
// and Redis is not told of them while that lasts.
func (l *Ledger) Add(n Counts, local bool) {
	if local {
		l.local = l.local.And(n)
	} else {
		l.outer = l.outer.And(n)
	}
}

// Drop notes holds that have ended.
func (l *Ledger) Drop(n Counts, local bool) {
	if local {
		l.local = l.local.Less(n)
	} else {
		l.outer = l.outer.Less(n)
	}
}

// Wish notes a call that needs Redis to know of it, until it is withdrawn.
func (l *Ledger) Wish(w *Wish) {
	l.wishes = append(l.wishes, w)
	l.coming = l.coming.And(w.More)
}

// Withdraw takes back a wish, which has come true or is in vain.
func (l *Ledger) Withdraw(w *Wish) {
	l.wishes = slices.DeleteFunc(l.wishes, func(other *Wish) bool { return other == w })
	l.coming = l.coming.Less(w.More)
}

// Strictest returns the most replicas that wishes ask for, and the longest time for them.
func (l *Ledger) Strictest() (replicas int, timeout time.Duration) {
	for _, w := range l.wishes {
		replicas, timeout = max(replicas, w.Replicas), max(timeout, w.Timeout)
	}
	return replicas, timeout
}

// Needs is how many holds Redis is to know of: those that there are or are about to be.
// Local ones count as one where the one they stood behind has ended.
func (l *Ledger) Needs() Counts {
	n := l.Reserved.And(l.outer).And(l.coming)
	n.Writes = max(n.Writes, min(l.local.Writes, 1))
	n.Reads = max(n.Reads, min(l.local.Reads, 1))
	return n
}

// Expects says that a call is about to make a hold.
func (l *Ledger) Expects() bool { return l.Reserved.And(l.coming) != Counts{} }

// Kept is the holds that there are of which Redis is to know.
func (l *Ledger) Kept() Counts {
	n := l.outer
	n.Writes = max(n.Writes, min(l.local.Writes, 1))
	n.Reads = max(n.Reads, min(l.local.Reads, 1))
	return n
}

// Resume notes that Redis has granted so many anew, to a request of that op.
func (l *Ledger) Resume(n Counts, op int64) {
	l.meant, l.told = n, n
	l.stated, l.answered = op, op
}

// Meant is what Redis was told last, whether it has answered or not: it may be so there.
func (l *Ledger) Meant() Counts { return l.meant }

// Told is what Redis has answered to last.
func (l *Ledger) Told() Counts { return l.told }

// Settled says that Redis has answered to the newest statement: no other can come true.
// That an older one said the same is not enough, as one between them may be on its way.
func (l *Ledger) Settled() bool { return l.answered == l.stated }

// Knows says that Redis knows exactly what it is to know.
func (l *Ledger) Knows() bool { return l.Settled() && l.told == l.Needs() }

// A Step is what is to be done next.
type Step int

// The steps.
const (
	Nothing Step = iota // Redis knows it already
	Say                 // Redis is to be told by a statement
	End                 // nothing is needed any more: the grant is to be released
)

// Next is what is to be done so that Redis knows of w, or with nil of whatever it is to
// know. The caller of a wish ends nothing: who has ended the last hold does.
func (l *Ledger) Next(w *Wish) Step {
	switch {
	case w != nil && w.op != 0 && w.op <= l.proven:
		return Nothing // another call's statement had it
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
	Op int64 // Redis ignores one whose number is not larger than the last it has seen
	Counts
	Lease time.Duration // at least so long; 0: as it is
	Least time.Duration // the shortest that a wish in it asks for; 0: none does
	Kept  bool          // or as it is, where it is renewed in time anyway
	// Opens: the last write hold has ended, and reads go on: others may read beside them.
	Opens bool
}

// State makes a statement of all that Redis is to know, under a number that is larger than all before.
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

// Answered notes that Redis has a statement. proven: as many replicas have it as anybody asks for.
func (l *Ledger) Answered(st Statement, proven bool) {
	if st.Op < l.answered {
		return // an older answer says nothing new
	}
	l.answered, l.told = st.Op, st.Counts
	if proven {
		l.proven = st.Op
	}
}
