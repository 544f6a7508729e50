package ledger_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/relock-go/relock/internal/ledger"
)

var one = ledger.One(false)

func wish() *ledger.Wish { return &ledger.Wish{More: one, Lease: time.Second} }

// holding returns a ledger with one write hold that Redis knows.
func holding() *ledger.Ledger {
	l := &ledger.Ledger{}
	l.Granted(one)
	l.Reserved = ledger.Counts{}
	l.Add(one, false)
	return l
}

func want[T comparable](t *testing.T, what string, got, wanted T) {
	t.Helper()
	if got != wanted {
		t.Errorf("%s: got %v, want %v", what, got, wanted)
	}
}

func TestAStatementIsOfAllThatComeTogether(t *testing.T) {
	l, a, b := holding(), wish(), wish()
	l.Wish(a)
	l.Wish(b)
	want(t, "first", l.Next(a), ledger.Say)
	st := l.State(7)
	want(t, "stated", st.Counts, ledger.Counts{Writes: 3})
	late := wish()
	l.Wish(late)
	l.Answered(st, true)
	want(t, "who made it", l.Next(a), ledger.Nothing)
	want(t, "who came with it", l.Next(b), ledger.Nothing)
	want(t, "who came later", l.Next(late), ledger.Say)
}

func TestAWishIsToldWhateverRedisKnows(t *testing.T) {
	l, w := holding(), &ledger.Wish{Lease: time.Second}
	l.Wish(w)
	want(t, "for a lease", l.Next(w), ledger.Say)
	only := &ledger.Wish{}
	l.Wish(only)
	want(t, "for nothing new", l.Next(only), ledger.Nothing)
}

func TestWhatTooFewReplicasHaveIsKnownAndNotProven(t *testing.T) {
	l, w := holding(), wish()
	l.Wish(w)
	l.Answered(l.State(1), false)
	want(t, "the wish", l.Next(w), ledger.Say)
	want(t, "the others", l.Next(nil), ledger.Nothing)
}

func TestAnUnansweredStatementIsMadeAgain(t *testing.T) {
	l := holding()
	l.Wish(wish())
	l.State(1)
	l.Drop(one, false)
	want(t, "after a loss of the answer", l.Next(nil), ledger.Say)
}

func TestAnOlderAnswerSaysNothingNew(t *testing.T) {
	l := holding()
	l.Add(one, false)
	first := l.State(1)
	l.Drop(one, false)
	l.Answered(l.State(2), true)
	l.Answered(first, true)
	want(t, "after an older answer", l.Next(nil), ledger.Nothing)
}

func TestTheLastHoldEndsTheGrant(t *testing.T) {
	l := holding()
	l.Drop(one, false)
	want(t, "nobody", l.Next(nil), ledger.End)
	want(t, "who waits for it to be told", l.Next(&ledger.Wish{}), ledger.Nothing)
	w := wish()
	l.Wish(w)
	want(t, "beside a call", l.Next(nil), ledger.Nothing)
}

func TestLocalHoldsStandForAnOuterOneThatHasEnded(t *testing.T) {
	l := holding()
	l.Add(ledger.Counts{Writes: 5}, true)
	want(t, "beside it", l.Knows(), true)
	l.Drop(one, false)
	want(t, "without it", l.Knows(), true)
	l.Drop(ledger.Counts{Writes: 5}, true)
	want(t, "at the end", l.Next(nil), ledger.End)
}

func TestOthersAreLetInWhenTheLastWriteEnds(t *testing.T) {
	l := holding()
	l.Add(ledger.One(true), false)
	st := l.State(1)
	want(t, "beside a write", st.Opens, false)
	l.Answered(st, true)
	l.Drop(one, false)
	want(t, "without", l.State(2).Opens, true)
	want(t, "again, unanswered", l.State(3).Opens, true)
}

// A world is a ledger, a Redis that ignores old statements, and a network between them that loses, duplicates and delays
// statements.
type world struct {
	ledger  *ledger.Ledger
	rand    *rand.Rand
	op      int64
	redis   ledger.Statement
	ways    []ledger.Statement // copies in the network
	answers []ledger.Statement
	calls   []*ledger.Wish
	holds   uint32
}

func (w *world) step() {
	switch w.rand.IntN(8) {
	case 0:
		call := wish()
		w.ledger.Wish(call)
		w.calls = append(w.calls, call)
	case 1:
		if call, ok := take(w, &w.calls); ok { // the call's context ends
			w.ledger.Withdraw(call)
		}
	case 2:
		if w.holds > 1 {
			w.holds--
			w.ledger.Drop(one, false)
		}
	case 3, 4:
		w.tell()
	case 5:
		if st, ok := take(w, &w.ways); ok {
			w.arrive(st)
		}
	case 6:
		if st, ok := take(w, &w.answers); ok {
			w.ledger.Answered(st, true)
		}
	case 7:
		take(w, &w.ways)
	}
	w.admit()
}

// tell makes the statement that one of the waiting calls would make.
func (w *world) tell() {
	var call *ledger.Wish
	if n := len(w.calls); n > 0 && w.rand.IntN(2) == 0 {
		call = w.calls[w.rand.IntN(n)]
	}
	if w.ledger.Next(call) == ledger.Say {
		w.op++
		st := w.ledger.State(w.op)
		w.ways = append(w.ways, st, st)
	}
}

func (w *world) arrive(st ledger.Statement) {
	if st.Op > w.redis.Op {
		w.redis = st
	}
	w.answers = append(w.answers, st)
}

// admit turns calls into holds if the ledger says that Redis knows of them.
func (w *world) admit() {
	for i := 0; i < len(w.calls); i++ {
		if w.ledger.Next(w.calls[i]) != ledger.Nothing {
			continue
		}
		w.ledger.Withdraw(w.calls[i])
		w.ledger.Add(one, false)
		w.holds++
		w.calls = append(w.calls[:i], w.calls[i+1:]...)
		i--
	}
}

func take[E any](w *world, list *[]E) (e E, ok bool) {
	if len(*list) == 0 {
		return e, false
	}
	i := w.rand.IntN(len(*list))
	e = (*list)[i]
	*list = append((*list)[:i], (*list)[i+1:]...)
	return e, true
}

// No matter which statements are lost, duplicated or late: Redis knows every hold, and in the end it knows exactly what
// it must know. Fails when a wish is fulfilled before its statement has arrived, when an older answer overrules a newer
// one, or when a statement without an answer is not repeated.
func TestRedisKnowsWhatIsHeld(t *testing.T) {
	for seed := range uint64(20_000) {
		w := &world{ledger: holding(), rand: rand.New(rand.NewPCG(seed, 0)), holds: 1, redis: ledger.Statement{Counts: one}}
		for range 40 {
			if w.step(); w.redis.Writes < w.holds {
				t.Fatalf("seed %d: %d holds, and redis knows of %d", seed, w.holds, w.redis.Writes)
			}
		}
		if err := w.finish(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// finish delivers every statement but loses the answers. Then it makes the missing statements, and returns an error if
// Redis does not know the holds after that.
func (w *world) finish() error {
	for _, st := range w.ways {
		w.arrive(st)
	}
	w.ways, w.answers = nil, nil
	for _, call := range w.calls {
		w.ledger.Withdraw(call)
	}
	w.calls = nil
	for range 3 {
		w.tell()
		for len(w.ways) > 0 {
			st, _ := take(w, &w.ways)
			w.arrive(st)
		}
		for len(w.answers) > 0 {
			st, _ := take(w, &w.answers)
			w.ledger.Answered(st, true)
		}
	}
	if !w.ledger.Knows() || w.redis.Writes != w.holds {
		return fmt.Errorf("%d holds, and redis knows of %d", w.holds, w.redis.Writes)
	}
	return nil
}
