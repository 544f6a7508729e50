package check

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/relock-go/relock/test/torture/history"
)

// three is a holder until 100, and two that wait: the first from 20, queued at
// 25, the second from 40. They hold from the given times.
func three(k string, first, second int64) *tale {
	a, b := int64(2), int64(3)
	if second < first {
		a, b = b, a
	}
	return kind(k).hold(held{w: 9, token: 1, call: 10, got: 11, releasing: 99, released: 100}).
		hold(held{w: 1, id: 5, token: a, call: 20, queued: 25, got: first, releasing: first + 10, released: first + 11}).
		hold(held{w: 2, id: 6, token: b, call: 40, queued: 45, got: second, releasing: second + 10, released: second + 11})
}

// unanswered is the same with a turn that is taken, and a holder whose release is not answered until then.
func unanswered(until int64) *tale {
	return kind("fair").hold(held{w: 9, token: 1, call: 10, got: 11, releasing: 99, released: until, why: "unconfirmed"}).
		hold(held{w: 1, id: 5, token: 3, call: 20, queued: 25, got: 130, releasing: 140, released: 141}).
		hold(held{w: 2, id: 6, token: 2, call: 40, queued: 45, got: 110, releasing: 120, released: 121})
}

// inLine has a call that stands in line behind one of its owner, which is queued at that time. Another call overtakes both.
func inLine(queued int64) *tale {
	return kind("fair").hold(held{w: 9, token: 1, call: 10, got: 11, releasing: 99, released: 100}).
		hold(held{w: 1, id: 5, owner: "me", token: 3, call: 20, queued: queued, got: 130, releasing: 140, released: 141}).
		hold(held{w: 1, id: 7, owner: "me", token: 4, call: 22, queued: 23, got: 150, releasing: 160, released: 161}).
		hold(held{w: 2, id: 6, token: 2, call: 25, queued: 45, got: 110, releasing: 120, released: 121})
}

var orderTales = []judged{
	{"a turn that is taken from a call in line, whose owner has asked", Overtaken, inLine(21)},
	{"a turn that is taken from a call in line, whose owner has not asked yet", "", inLine(50)},
	{"turns in order", "", three("fair", 110, 130)},
	{"a turn that is taken", Overtaken, three("fair", 130, 110)},
	{"a turn that is taken on a fair read/write lock", Overtaken, three("fair rw", 130, 110)},
	{"a turn that is taken on a plain lock", "", three("plain", 130, 110)},
	{"a turn that is taken from one who was cut off", "", three("fair", 130, 110).fault(50, 60, history.Cut, "link 1")},
	{"a turn that is taken while the server does not answer", "", unanswered(700)},
	{"a turn that is taken while the server does not answer for a moment", Overtaken, unanswered(200)},
	{"a turn that is taken while another was cut off", Overtaken, three("fair", 130, 110).fault(50, 60, history.Cut, "link 2")},
	{"a turn that is taken from one whose link was slow for a moment", Overtaken, three("fair", 130, 110).fault(50, 60, history.Slow, "link 1")},
	{"a turn that is taken after a flush", "", three("fair", 130, 110).fault(50, 51, history.FlushAll, "one")},
	{"a turn that is taken after a flush elsewhere", Overtaken, three("fair", 130, 110).fault(50, 51, history.FlushAll, "two")},
	{"a wake-up in time", "", plain().brief(1, 1, 10).hold(held{w: 2, token: 2, call: 15, queued: 16, got: 800, releasing: 810, released: 811})},
	{"a wake-up that is lost", LostWakeup, plain().brief(1, 1, 10).hold(held{w: 2, token: 2, call: 15, queued: 16, got: 900, releasing: 910, released: 911})},
	{"a wake-up that is lost, and a call that gives up", LostWakeup, plain().brief(1, 1, 10).hold(held{w: 2, id: 2, call: 15, queued: 16, failed: 900, why: "ctx"})},
	{
		"a wake-up that is lost, and a call that never returns", LostWakeup,
		plain().brief(1, 1, 10).hold(held{w: 2, id: 2, call: 15, queued: 16}).add(900, history.Event{What: history.Call, Worker: 2, ID: 3, Lock: "one/y"}),
	},
	{
		"a wake-up after a hold that nobody gave back", "",
		plain().hold(held{w: 1, token: 1, call: 1, got: 2, died: 10}).hold(held{w: 2, token: 2, call: 15, queued: 16, got: 1700, releasing: 1710, released: 1711}),
	},
	{
		"a wake-up while the server was down", "",
		plain().brief(1, 1, 10).fault(100, 1500, history.StopServer, "one").hold(held{w: 2, token: 2, call: 15, queued: 16, got: 2600, releasing: 2610, released: 2611}),
	},
	{
		"a wake-up long after the server was down", LostWakeup,
		plain().brief(1, 1, 10).fault(100, 1500, history.StopServer, "one").hold(held{w: 2, token: 2, call: 15, queued: 16, got: 3400, releasing: 3410, released: 3411}),
	},
	{
		"a wake-up a lease and a second after the waiter's link could be dialled again", "",
		plain().brief(1, 1, 10).hold(held{w: 2, token: 2, call: 15, queued: 16, got: 2850, releasing: 2860, released: 2861}).fault(20, 90, history.HalfOpen, "link 2"),
	},
	{
		"a wake-up as long after another's", LostWakeup,
		plain().brief(1, 1, 10).hold(held{w: 2, token: 2, call: 15, queued: 16, got: 2850, releasing: 2860, released: 2861}).fault(20, 90, history.HalfOpen, "link 1"),
	},
	{
		"a wake-up as long after answers to the waiter were slow", LostWakeup,
		plain().brief(1, 1, 10).hold(held{w: 2, token: 2, call: 15, queued: 16, got: 2850, releasing: 2860, released: 2861}).fault(20, 90, history.Slow, "link 2"),
	},
	{"a probe that saw a free lock", LostWakeup, plain().brief(1, 1, 10).add(100, history.Event{Worker: -1, What: history.Free, Lock: lock, Until: start + 1000*ms})},
	{"a probe that saw a free lock for a moment", "", plain().brief(1, 1, 10).add(100, history.Event{Worker: -1, What: history.Free, Lock: lock, Until: start + 900*ms})},
	{"a key that is left", Leaked, plain().brief(1, 1, 10).add(100, history.Event{Worker: -1, What: history.Swept, On: "one", Fault: history.LeftKey, By: 1})},
	{"no key that is left", "", plain().brief(1, 1, 10).add(100, history.Event{Worker: -1, What: history.Swept, On: "one", Fault: history.LeftKey})},
	{"a leak", Leaked, plain().brief(1, 1, 10).add(100, history.Event{Worker: -1, What: history.Leak, On: "worker 1", Err: "goroutines"})},
	{"a call with an id that is taken", Malformed, plain().brief(1, 1, 10).brief(1, 1, 30)},
	{"a release of no call", Malformed, plain().brief(1, 1, 10).add(50, history.Event{What: history.Releasing, Worker: 1, ID: 77, Lock: lock})},
	{"an event that is not known", Malformed, plain().brief(1, 1, 10).add(50, history.Event{What: "dance", Worker: 1, ID: 1, Lock: lock})},
	{"an event without a time", Malformed, plain().brief(1, 1, 10).add(-start/ms, history.Event{What: history.Lost, Worker: 1, ID: 1, Lock: lock})},
	{"a hold without a token", Malformed, plain().hold(held{w: 1, id: 1, call: 1, got: 2, releasing: 3, released: 4})},
	{"a hold that says nothing of its trust", Malformed, plain().add(1, history.Event{What: history.Call, Worker: 1, ID: 1, Lock: lock}).add(2, history.Event{What: history.Acquired, Worker: 1, ID: 1, Token: 1})},
}

// Each minimum fails a run in which it is not reached, by its own words.
func TestRunsInWhichTooLittleHappenedFail(t *testing.T) {
	least := *MinimumsFor(30 * time.Minute)
	in := plain().brief(1, 1, 10).brief(2, 2, 30).input()
	report := judge(in, Options{Minimums: &least}).report
	var text strings.Builder
	for _, v := range report.Violations {
		if v.Name != TooLittle {
			t.Errorf("unexpected: %s", v)
		}
		text.WriteString(v.Detail + "\n")
	}
	for _, want := range slices.Concat(Kinds, []string{
		"grants: 2,", "grants of plain w", "grants of fair w", "grants of rw r", "grants of fair rw r", "faults: 0", "stale", "ambiguous", "cancelled", "holds lost", "re-entries",
		"turns", "waits", "effects", "lease overlaps after flushall", "lease overlaps after failover", "failovers, cluster", "failovers, sentinel", "lease overlaps after a failover, sentinel",
		"a key left", "a goroutine left", "a connection left",
	}) {
		if !strings.Contains(text.String(), want) {
			t.Errorf("nothing is said of %q", want)
		}
	}
	if report.OK() {
		t.Error("the run is said to be in order")
	}
}

func TestMinimumsGrowWithTheLengthOfTheRun(t *testing.T) {
	half, whole := MinimumsFor(15*time.Minute), MinimumsFor(30*time.Minute)
	if whole.Grants != 1_000_000 || half.Grants != 500_000 || whole.Faults != 2_000 || whole.Kinds[history.Cut] != 50 || half.Kinds[history.Cut] != 25 {
		t.Errorf("half an hour asks for %+v, half of it for %+v", whole, half)
	}
	if short := MinimumsFor(20 * time.Second); short.Stale != 1 || short.Cancelled < 1 || short.Overlaps[history.FlushAll] != 0 {
		t.Errorf("20 s ask for %+v", short)
	}
}
