package explore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/relock-go/relock/internal/rig"
)

// many sessions are more than one script takes at a time, twice over.
const many = 600

// A manyRun has one lock whose sessions are many. The model knows no bounds.
type manyRun struct{ *modelRun }

func newManyRun(t *testing.T) manyRun {
	rdb := modelServer(t)
	r := manyRun{newModelRun(t, rdb, subscribeModel(t, rdb))}
	r.pass(0)
	return r
}

func (r manyRun) pass(micros int64) {
	r.micros += micros
	r.rdb.MSet(r.t.Context(), "model:s", r.micros/1_000_000, "model:us", r.micros%1_000_000)
}

func manyNonce(i int) string { return fmt.Sprintf("nonce-%016d", i) }

// take asks for the lock without waiting.
func (r manyRun) take(i int, owner, mode string) (code, low int64) {
	r.t.Helper()
	return r.takeFor(i, owner, mode, modelTTL)
}

// takeFor asks for a lease of so many ms.
func (r manyRun) takeFor(i int, owner, mode string, ttl int64) (code, low int64) {
	r.t.Helper()
	request := modelRequest{ttl: ttl, block: 1}
	counts := map[string]string{"w": "1 1 0 ", "r": "1 0 1 "}[mode]
	reply := taken(r.eval("acquire", 2, rig.StoredKind("rw"), r.micros+10_000_000, "600000 0 "+modelPrefix,
		modelIdentity(modelClient(0), manyNonce(i), owner), "o:"+owner, fmt.Sprint(counts, request.ttl, " "), 1, ttl+600_000, -1), []modelRequest{request})
	return reply[2].(int64), number(fmt.Sprint(reply[3]))
}

func (r manyRun) takes(i int, owner, mode string) (low int64) {
	r.t.Helper()
	code, low := r.take(i, owner, mode)
	if code != 1 {
		r.t.Fatalf("%s is answered %d, want that it holds", owner, code)
	}
	return low
}

// left is what is left of a lease.
func (r manyRun) left(i int, owner string) int64 {
	r.t.Helper()
	reply := r.eval("hold", 2, modelTTL, modelTTL+600_000, modelIdentity(modelClient(0), manyNonce(i), owner), "o:"+owner, 1, 0, 1)
	return number(fmt.Sprint(reply[1]))
}

// holders are the owners that info names, and their holds.
func (r manyRun) holders() (all []string) {
	r.t.Helper()
	info := r.eval("info", 2, 0, 10_000)
	for i := 6; i+7 < len(info); i += 8 {
		all = append(all, fmt.Sprint(info[i], " ", info[i+1], info[i+2]))
	}
	slices.Sort(all)
	return all
}

// remaining is how long info says that an owner holds.
func (r manyRun) remaining(owner string) int64 {
	r.t.Helper()
	info := r.eval("info", 2, 0, 10_000)
	for i := 6; i+7 < len(info); i += 8 {
		if fmt.Sprint(info[i]) == owner {
			return number(fmt.Sprint(info[i+5]))
		}
	}
	return 0
}

// crowd lets an owner hold in many sessions, the first of which is of that mode.
func (r manyRun) crowd(mode string, apart int64) (low int64) {
	r.t.Helper()
	low = r.takes(many-1, "crowd", mode) // the last that is looked at
	for i := range many - 1 {
		r.pass(apart)
		r.takes(i, "crowd", "r")
	}
	return low
}

// TestForceEndsAGrantOfManySessionsAtOnce, and goes on until all of them are gone.
// Fails when it ends with the last of its sessions, when its calls pass one over, and
// when one of them takes what the owner has begun since.
func TestForceEndsAGrantOfManySessionsAtOnce(t *testing.T) {
	for name, test := range map[string]struct {
		mode  string
		apart int64
		dead  int
	}{
		"one after the other": {"w", 1000, 0}, "in one instant": {"w", 0, 0}, "beside many that are dead": {"r", 0, many},
	} {
		t.Run(name, func(t *testing.T) {
			r := newManyRun(t)
			for i := range test.dead {
				r.takes(2*many+i, "dead", "r")
			}
			r.pass(modelTTL * 600)
			low := r.crowd(test.mode, test.apart)
			r.takeFor(4*many, "crowd", "r", 10*modelTTL) // it is forgotten before the others
			r.pass(modelTTL * 400)                       // the leases of the dead are over
			first := r.eval("force", 2, "crowd", low, 0, 600_000, modelPrefix)
			if first[0] != int64(1) || first[1] != int64(1) {
				t.Fatalf("the first call is answered %v, want that it has ended the grant and is to go on", first)
			}
			if got := r.holders(); len(got) > 0 {
				t.Errorf("held by %v after the first call", got)
			}
			r.takes(many, "other", "r")
			r.takeFor(many+1, "crowd", "r", modelTTL/4) // what is left of the others is longer
			r.holdLater(modelTTL / 4)
			r.holdNothing()
			for calls, reply := 0, first; reply[1] == int64(1); calls++ {
				if reply = r.eval("force", 2, "crowd", low, reply[2], 600_000, modelPrefix); calls > many || reply[0] != int64(0) {
					t.Fatalf("call %d is answered %v, want an end, and no second grant", calls, reply)
				}
			}
			r.leavesTwo()
		})
	}
}

// holdLater asserts that info names the later sessions alone, the crowd's for so long at most.
func (r manyRun) holdLater(most int64) {
	r.t.Helper()
	if got := r.holders(); !slices.Equal(got, []string{"crowd r1", "other r1"}) {
		r.t.Errorf("held by %v, want the later sessions", got)
	}
	if left := r.remaining("crowd"); left > most {
		r.t.Errorf("the later session holds for %d ms, want %d", left, most)
	}
}

// holdNothing asserts that no session of the crowd's first grant holds.
func (r manyRun) holdNothing() {
	r.t.Helper()
	for i := range many {
		if left := r.left(i, "crowd"); left != 0 {
			r.t.Fatalf("session %d of the grant that has ended has %d ms left", i, left)
		}
	}
}

// leavesTwo asserts that the later sessions hold, and that all others are gone and told.
func (r manyRun) leavesTwo() {
	r.t.Helper()
	if got := r.holders(); !slices.Equal(got, []string{"crowd r1", "other r1"}) {
		r.t.Errorf("held by %v, want the later sessions", got)
	}
	sessions := r.rdb.ZCount(r.t.Context(), r.keys.Queue, "-inf", "(0").Val()
	fields := slices.DeleteFunc(r.rdb.HKeys(r.t.Context(), r.keys.Hash).Val(), func(f string) bool { return !strings.HasPrefix(f, "s:") })
	if sessions != 2 || len(fields) != 2 {
		r.t.Errorf("%d sessions and %d records are there, want 2", sessions, len(fields))
	}
	lost := map[string]int{}
	for _, m := range r.messages() {
		lost[m]++
	}
	for i := range many {
		if n := lost[modelClient(0)+" lost "+manyNonce(i)]; n != 1 {
			r.t.Fatalf("session %d is told %d times", i, n)
		}
	}
}

// TestExclusiveGrantOfManySessionsEndsWithItsLongestLease, whatever is left to forget.
// Fails when it ends with the last record, when who holds then excludes nobody, and when
// what is left takes anything from the owner's next grant.
func TestExclusiveGrantOfManySessionsEndsWithItsLongestLease(t *testing.T) {
	r := newManyRun(t)
	before := r.crowd("w", 0)
	r.pass(2 * modelTTL * 1000)
	if low := r.takes(many, "crowd", "w"); low <= before {
		t.Errorf("token %d after %d: it joins the grant that is over", low, before)
	}
	for i := range 4 { // each forgets some
		if code, _ := r.take(many+1, "other", "r"); code != 3 {
			t.Fatalf("another is answered %d the %d. time, want that it is busy", code, i)
		}
	}
	if got := r.holders(); !slices.Equal(got, []string{"crowd w1"}) {
		t.Errorf("held by %v, want the later session", got)
	}
}

// TestDeadWriterOfManySessionsIsInNobodysWay. Fails when the others wait until all of its
// sessions have been forgotten.
func TestDeadWriterOfManySessionsIsInNobodysWay(t *testing.T) {
	for _, mode := range []string{"r", "w"} {
		r := newManyRun(t)
		r.crowd("w", 0)
		r.pass(2 * modelTTL * 1000)
		if code, _ := r.take(many+1, "other", mode); code != 1 {
			t.Errorf("%s: another is answered %d, want that it holds", mode, code)
		}
	}
}

// TestDeadGrantOfManySessionsIsJoinedByNobody: it is there for as long as there are
// sessions of it to forget, and others may have held since.
// Fails when who joins it has its tokens once more.
func TestDeadGrantOfManySessionsIsJoinedByNobody(t *testing.T) {
	r := newManyRun(t)
	for i := range 2 * many {
		r.takes(i, "crowd", "r")
	}
	r.pass(2 * modelTTL * 1000)
	r.wantNewGrantAfterAnothers()
}

// TestDeadGrantOfManySessionsIsJoinedByNobodyWhileOthersRead. Fails when a grant is over
// only once somebody has written: its owner would hold again by a token that it has lost.
func TestDeadGrantOfManySessionsIsJoinedByNobodyWhileOthersRead(t *testing.T) {
	r := newManyRun(t)
	if code, _ := r.takeFor(2*many, "other", "r", 100*modelTTL); code != 1 {
		t.Fatalf("another is answered %d, want that it holds", code)
	}
	lost := r.crowd("r", 0)
	r.pass(2 * modelTTL * 1000)
	if low := r.takes(2*many+1, "crowd", "r"); low <= lost {
		t.Errorf("token %d after %d, which was lost", low, lost)
	}
}

// TestDeadGrantIsJoinedByNobodyThoughALongLeaseOfItWasUnlocked: an owner's grant
// notes the latest deadline of its sessions, also of those that were unlocked.
// Fails when that lets somebody join after another has written meanwhile.
func TestDeadGrantIsJoinedByNobodyThoughALongLeaseOfItWasUnlocked(t *testing.T) {
	r := newManyRun(t)
	for i := range 2 * many {
		r.takes(i, "crowd", "r")
	}
	if code, _ := r.takeFor(2*many+2, "crowd", "r", 100*modelTTL); code != 1 {
		t.Fatalf("the long lease is answered %d, want that it holds", code)
	}
	r.leaves(2*many+2, "crowd")
	r.pass(2 * modelTTL * 1000)
	r.wantNewGrantAfterAnothers()
}

// wantNewGrantAfterAnothers lets another write and leave, and the owner come again.
func (r manyRun) wantNewGrantAfterAnothers() {
	r.t.Helper()
	between := r.takes(2*many, "other", "w")
	r.leaves(2*many, "other")
	if low := r.takes(2*many+1, "crowd", "r"); low <= between {
		r.t.Errorf("token %d after another's %d", low, between)
	}
}

func (r manyRun) leaves(i int, owner string) {
	r.t.Helper()
	r.eval("release", 2, modelIdentity(modelClient(0), manyNonce(i), owner), "o:"+owner, 0, "600000 "+modelPrefix)
}

// TestWriterOfSeveralThatOnlyReadsExcludesNobody: an owner writes in one session and reads
// in another, and gives up the write. Fails when its grant goes on counting that.
func TestWriterOfSeveralThatOnlyReadsExcludesNobody(t *testing.T) {
	r := newManyRun(t)
	r.takes(0, "me", "w")
	r.takes(1, "me", "r")
	if code, _ := r.take(2, "other", "r"); code == 1 {
		t.Fatal("another reads while the owner writes")
	}
	reply := r.eval("hold", 2, modelTTL, modelTTL+600_000, modelIdentity(modelClient(0), manyNonce(0), "me"), "o:me", 2, 0, 1)
	if got := r.holders(); !slices.Equal(got, []string{"me r2"}) {
		t.Errorf("held by %v after %v, want two reads", got, reply)
	}
	r.takes(2, "other", "r")
}
