package check

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/relock-go/relock/test/torture/history"
)

// kept is what the rig saw: one holder for all that time, in ms.
func (x *tale) kept(from, to, token int64) *tale {
	return x.add(from, history.Event{Worker: -1, What: history.Kept, Lock: lock, Owner: "o", Token: token * us, Until: start + to*ms})
}

// script is one that took so many ms.
func (x *tale) script(at, took int64) *tale {
	return x.add(at, history.Event{Worker: -1, What: history.Script, On: "one", Err: "release", By: took * ms, Until: start + (at+took)*ms})
}

// pinged is a server with so many pings, of which some took so many ms.
func (x *tale) pinged(on string, all, late, took int64) *tale {
	for i := range late {
		x.add(i, history.Event{Worker: -1, What: history.Ping, On: on, Until: start + (i+took)*ms})
	}
	return x.add(0, history.Event{Worker: -1, What: history.Ping, On: on, By: all})
}

var tempoTales = []struct {
	name string
	want Name // "": none
	tale *tale
}{
	{
		"a holder that works", "",
		plain().hold(held{w: 1, token: 1, call: 1, got: 2, trusted: 19_500, releasing: 20_000, released: 20_001}).kept(3, 20_000, 1),
	},
	{"a holder of whom no call knows", KeptForNobody, plain().brief(1, 1, 10).kept(30, 9_000, 2)},
	{"a holder of whom no call knows for as long as late requests", "", plain().brief(1, 1, 10).kept(30, 5_000, 2)},
	{
		"a holder behind one that has lost its hold and not unlocked it", KeptForNobody,
		plain().hold(held{w: 1, token: 1, call: 1, got: 2, lost: 100, releasing: 20_000, released: 20_001, why: "lost"}).
			fault(90, 99, history.ForceUnlock, "one").kept(110, 19_000, 2),
	},
	{
		"a call that is given the lock in the end", KeptForNobody,
		plain().hold(held{w: 1, token: 1, call: 1, got: 9_000, releasing: 9_010, released: 9_011}).kept(2, 9_000, 1),
	},
	{
		"a call that returns what was just lost", "",
		plain().add(1, history.Event{Worker: 1, ID: 1, What: history.Call, Lock: lock, Kind: "plain", Mode: "w", TTL: 1000}).
			add(500, history.Event{Worker: 1, ID: 1, What: history.Acquired, Lock: lock, Token: us, Until: 1, By: 20 * ms}),
	},
	{
		"a call that returns what was lost before", ReturnedLost,
		plain().add(1, history.Event{Worker: 1, ID: 1, What: history.Call, Lock: lock, Kind: "plain", Mode: "w", TTL: 1000}).
			add(500, history.Event{Worker: 1, ID: 1, What: history.Acquired, Lock: lock, Token: us, Until: 1, By: 300 * ms}),
	},
	{
		"a call that returns what was lost while its process was stopped", "",
		plain().add(1, history.Event{Worker: 1, ID: 1, What: history.Call, Lock: lock, Kind: "plain", Mode: "w", TTL: 1000}).
			add(500, history.Event{Worker: 1, ID: 1, What: history.Acquired, Lock: lock, Token: us, Until: 1, By: 300 * ms}).
			fault(210, 490, history.StopWorker, "worker 1"),
	},
	{"short scripts", "", plain().brief(1, 1, 10).script(20, 9).script(40, 9)},
	{"long scripts", SlowScript, plain().brief(1, 1, 10).script(20, 11).script(40, 11)},
	{"one script that may have been the hypervisor's", "", plain().brief(1, 1, 10).script(20, 40)},
	{"one script that was not", SlowScript, plain().brief(1, 1, 10).script(20, 60)},
	{"a long script on a busy machine", "", plain().brief(1, 1, 10).pinged(control, 10, 1, 70).script(20, 60)},
	{"a long script on a machine that was busy before", SlowScript, plain().brief(1, 1, 10).pinged(control, 10, 1, 9).script(20, 60)},
	{"a long script on a server whose clock was stepped", "", plain().brief(1, 1, 10).fault(25, 26, history.ClockForward, "one").script(20, 60)},
	{"long scripts on a server that was stopped", "", plain().brief(1, 1, 10).fault(15, 300, history.StopServer, "one").script(20, 60).script(90, 60)},
	{"pings", "", plain().brief(1, 1, 10).pinged("one", 1000, 9, 500).pinged(control, 1000, 0, 0)},
	{"late pings", SlowServer, plain().brief(1, 1, 10).pinged("one", 1000, 11, 20).pinged(control, 1000, 0, 0)},
	{"late pings on a busy machine", "", plain().brief(1, 1, 10).pinged("one", 1000, 11, 70).pinged(control, 1000, 11, 20)},
	{"late pings of a server that was killed", "", plain().brief(1, 1, 10).fault(0, 900, history.KillServer, "one").pinged("one", 1000, 11, 500)},
	{
		"a fair call that gives up and had its turn to come", Overtaken,
		kind("fair").hold(held{w: 3, token: 1, call: 1, got: 2, releasing: 3000, released: 3001, trusted: 2500}).
			hold(held{w: 1, id: 9, call: 5, queued: 6, failed: 5000, why: "ctx"}).
			hold(held{w: 2, token: 2, call: 100, got: 3002, releasing: 3010, released: 3011}),
	},
	{
		"a fair call that gives up before", "",
		kind("fair").hold(held{w: 3, token: 1, call: 1, got: 2, releasing: 3000, released: 3001, trusted: 2500}).
			hold(held{w: 1, id: 9, call: 5, queued: 6, failed: 3000, why: "ctx"}).
			hold(held{w: 2, token: 2, call: 100, got: 3002, releasing: 3010, released: 3011}),
	},
}

func TestTempoIsJudged(t *testing.T) {
	for _, test := range tempoTales {
		t.Run(strings.ReplaceAll(test.name, " ", "_"), func(t *testing.T) {
			names, report := verdict(test.tale.input())
			if !slices.Contains(names, test.want) && test.want != "" {
				t.Errorf("%q was not caught, but %q", test.want, names)
			}
			if test.want == "" && len(names) > 0 {
				t.Errorf("nothing is wrong, but:\n%s", report.Markdown())
			}
		})
	}
}

func TestPercentileIsThatOfAll(t *testing.T) {
	late := []time.Duration{30, 10, 20}
	for count, want := range map[int64]time.Duration{10: 30, 100: 20, 250: 10, 300: 0, 0: 0} {
		if got := percentile(slices.Clone(late), count); got != want {
			t.Errorf("of %d: %v, want %v", count, got, want)
		}
	}
}
