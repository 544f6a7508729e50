package explore_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/relock-go/relock/internal/rig"
)

// A branchRun is one lock, and owners of a family that state to the scripts what a test says. These are the shortest
// schedules by which the comparison with the model has found a fault.
type branchRun struct {
	manyRun
	kind string
}

var (
	flowOwner  = "owner0"
	firstChild = childOf(flowOwner, 1)
	otherChild = childOf(flowOwner, 2)
	grandchild = childOf(firstChild, 1)
)

func newBranchRun(t *testing.T, kind string) branchRun { return branchRun{newManyRun(t), kind} }

// identity is that of request i; of a semaphore, one of two permits.
func (r branchRun) identity(i int, owner string) string {
	a := modelRequest{nonce: manyNonce(i)}
	if r.kind == "semaphore" {
		a.weight, a.permits = 1, 2
	}
	return a.identity(modelClient(0), owner)
}

// asks is the answer to request i, which queues.
func (r branchRun) asks(i int, owner, mode string, ttl int64) (code int64) {
	r.t.Helper()
	counts := map[string]string{"w": "1 1 0 ", "r": "1 0 1 "}[mode]
	reply := taken(r.eval("acquire", 2, rig.StoredKind(r.kind), r.micros+10_000_000, "600000 0 "+modelPrefix,
		r.identity(i, owner), "o:"+owner, fmt.Sprint(counts, ttl, " "), 1, ttl+600_000, 0), []modelRequest{{ttl: ttl, block: 1}})
	code, _ = reply[2].(int64)
	return code
}

func (r branchRun) wants(i int, owner, mode string, ttl, code int64) {
	r.t.Helper()
	if got := r.asks(i, owner, mode, ttl); got != code {
		r.t.Fatalf("request %d of %s is answered %d, want %d", i, owner, got, code)
	}
}

func (r branchRun) leaves(i int, owner string) {
	r.t.Helper()
	r.eval("release", 2, r.identity(i, owner), "o:"+owner, 0, "600000 "+modelPrefix)
}

// hears asserts what has been published since it was asked last: a message by its first words, and its request.
func (r branchRun) hears(what string, i int) {
	r.t.Helper()
	want := modelClient(0) + " " + what + " " + manyNonce(i)
	got := r.messages()
	if !slices.ContainsFunc(got, func(m string) bool { return len(m) >= len(want) && m[:len(want)] == want }) {
		r.t.Errorf("published is %q, want %q", got, want)
	}
}

// TestABranchIsToldThoughAStatementFindsItsAncestorDead: a renewal drops who is dead and settles nothing. Fails when
// the next script does not know that somebody entered through what has gone.
func TestABranchIsToldThoughAStatementFindsItsAncestorDead(t *testing.T) {
	r := newBranchRun(t, "rw")
	r.wants(0, flowOwner, "r", modelTTL, 1)
	r.wants(1, firstChild, "r", 3*modelTTL, 1)
	r.wants(2, "owner1", "r", 3*modelTTL, 1)
	r.pass(1001 * modelTTL)
	if reply := r.eval("hold", 2, modelTTL, modelTTL+600_000, r.identity(2, "owner1"), "o:owner1", 2, 0, 1); fmt.Sprint(reply[1]) == "0" {
		t.Fatal("the statement finds that nobody holds")
	}
	r.leaves(3, "owner1")
	r.hears("ended", 1)
}

// TestATicketOfABranchGoesThoughAStatementFindsItsAncestorDead: nobody hears for a ticket, and it may last for hours.
func TestATicketOfABranchGoesThoughAStatementFindsItsAncestorDead(t *testing.T) {
	for name, find := range map[string]func(r branchRun){
		"by a statement": func(r branchRun) {
			r.eval("hold", 2, modelTTL, modelTTL+600_000, r.identity(2, "owner1"), "o:owner1", 2, 1, 0)
		},
		"by a copy of a detach": func(r branchRun) {
			r.eval("detach", 2, r.identity(2, "owner1"), "ticket", 1, 0, modelTTL, 0, 600_000, modelPrefix)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newBranchRun(t, "plain")
			r.wants(0, flowOwner, "w", modelTTL, 1)
			r.wants(1, firstChild, "w", modelTTL, 1)
			if reply := r.eval("detach", 2, r.identity(1, firstChild), "its-ticket", r.micros, 0, 3_600_000, 0, 600_000, modelPrefix); reply[0] != int64(1) {
				t.Fatalf("detach is answered %v", reply)
			}
			r.pass(1001 * modelTTL)
			find(r)
			r.wants(3, "owner1", "w", modelTTL, 1)
		})
	}
}

// TestAnOwnerWaitsForWhatIsLeftOfItsEndedHold: its client, or that of a branch which had entered, may rely on it. Fails
// when the owner is in two grants, whose records are one: it would lose the later, or live on in the earlier.
func TestAnOwnerWaitsForWhatIsLeftOfItsEndedHold(t *testing.T) {
	for _, kind := range []string{"rw", "semaphore"} {
		t.Run(kind, func(t *testing.T) {
			r := newBranchRun(t, kind)
			r.wants(0, firstChild, "r", modelTTL, 1)
			r.wants(1, grandchild, "r", modelTTL, 1)
			r.leaves(0, firstChild)
			r.wants(2, firstChild, "r", modelTTL, 2)
			r.wants(3, grandchild, "r", modelTTL, 2)
			r.messages()
			r.leaves(1, grandchild)
			r.hears("grant", 2)
			if reply := r.eval("hold", 2, modelTTL, modelTTL+600_000, r.identity(2, firstChild), "o:"+firstChild, 2, 0, 1); reply[1] == int64(0) {
				t.Error("the owner has lost what it was granted")
			}
		})
	}
}

// TestABranchBehindOneThatLeavesTheQueueIsLetIn. Fails when it waits for its next heartbeat.
func TestABranchBehindOneThatLeavesTheQueueIsLetIn(t *testing.T) {
	r := newBranchRun(t, "rw")
	r.wants(0, flowOwner, "w", modelTTL, 1)
	r.wants(1, firstChild, "r", modelTTL, 1)
	r.wants(2, otherChild, "w", modelTTL, 2)
	r.wants(3, childOf(flowOwner, 3), "r", modelTTL, 2)
	r.leaves(2, otherChild)
	r.hears("grant", 3)
}

// TestABranchThatWaitsHearsThatItsAncestorOnlyReads: it can never write there, and is refused when it asks.
func TestABranchThatWaitsHearsThatItsAncestorOnlyReads(t *testing.T) {
	r := newBranchRun(t, "rw")
	r.wants(0, flowOwner, "w", modelTTL, 1)
	r.wants(1, firstChild, "w", modelTTL, 1)
	r.wants(2, otherChild, "w", modelTTL, 2)
	r.eval("downgrade", 2, r.identity(0, flowOwner), 2, 1, modelTTL, 600_000, modelPrefix)
	r.hears("look", 2)
	r.wants(2, otherChild, "w", modelTTL, -6)
}

// TestABranchEntersAFurtherAncestorOnceTheNearerHasLeft, which hold by grants of their own. Fails when it waits for its
// next heartbeat.
func TestABranchEntersAFurtherAncestorOnceTheNearerHasLeft(t *testing.T) {
	r := newBranchRun(t, "semaphore")
	r.wants(0, firstChild, "r", modelTTL, 1)
	r.wants(1, flowOwner, "r", modelTTL, 1)
	r.wants(2, grandchild, "r", modelTTL, 1)
	r.wants(3, "owner1", "r", modelTTL, 2)
	r.wants(4, childOf(firstChild, 2), "r", modelTTL, 2)
	r.leaves(0, firstChild)
	r.hears("grant", 4)
}

// TestABranchWhoseWriteHasEndedIsRefusedToWriteAgain: its ancestor only reads by now. Fails when the branch enters its
// own hold, which has ended for writing, and learns that with a renewal.
func TestABranchWhoseWriteHasEndedIsRefusedToWriteAgain(t *testing.T) {
	r := newBranchRun(t, "rw")
	r.wants(0, flowOwner, "w", modelTTL, 1)
	r.wants(1, firstChild, "w", modelTTL, 1)
	r.eval("downgrade", 2, r.identity(0, flowOwner), 2, 1, modelTTL, 600_000, modelPrefix)
	r.wants(2, firstChild, "w", modelTTL, -6)
	r.wants(3, firstChild, "r", modelTTL, 1)
}

// TestABranchThatItsAncestorSignalsEntersAtOnce. Fails when it waits for its next heartbeat.
func TestABranchThatItsAncestorSignalsEntersAtOnce(t *testing.T) {
	r := newBranchRun(t, "plain")
	r.wants(0, firstChild, "w", 10*modelTTL, 1)
	if reply := r.eval("await", 2, r.identity(0, firstChild), 2, 1, 10*modelTTL, "ready", 600_000, modelPrefix, r.micros); reply[2] != int64(1) {
		t.Fatalf("await is answered %v", reply)
	}
	r.pass(1000)
	r.wants(1, flowOwner, "w", modelTTL, 1)
	r.eval("signal", 2, r.identity(1, flowOwner), 2, "ready", 0, 600_000, modelPrefix)
	r.hears("grant", 0)
}
