package check

import "github.com/relock-go/relock/test/torture/history"

// ran is a run of Once of 10 ms, in an interval of 1 s by its token.
func ran(w int, token, at int64, unspent string) held {
	return held{w: w, id: at, token: token, every: 1000, call: at, got: at + 1, releasing: at + 10, released: at + 11, unspent: unspent}
}

// spent is a call of Once that finds its interval spent, which has lasted for so long.
func spent(w int, at, into int64) held {
	return held{w: w, id: at, every: 1000, call: at - 1, failed: at, why: "not acquired", into: into}
}

func ticking(all ...held) *tale {
	x := plain()
	for _, h := range all {
		x.hold(h)
	}
	return x
}

// setBack is two runs whose tokens follow each other but for one, the second at that time. The
// clock was set back by a second at 10.1 s.
func setBack(second int64) *tale {
	return ticking(ran(1, 7_000_000, 10_000, ""), ran(2, 7_000_002, second, "")).
		add(10_100, history.Event{Worker: -1, What: history.Fault, Fault: history.ClockBack, On: "one", By: 1e9})
}

var tickTales = []judged{
	{"a run in each interval", "", ticking(ran(1, 7_000_000, 10_000, ""), ran(2, 8_000_000, 11_000, ""), ran(2, 9_999_999, 12_900, ""))},
	{"two runs in one interval", TickTwice, ticking(ran(1, 7_000_000, 10_000, ""), ran(2, 7_999_999, 10_900, ""))},
	{"two runs in one interval, of which the first gave it back", "", ticking(ran(1, 7_000_000, 10_000, "unspent"), ran(2, 7_900_000, 10_900, ""))},
	{
		"two runs in one interval with a flush between", "",
		ticking(ran(1, 7_000_000, 10_000, ""), ran(2, 7_900_000, 10_900, "")).fault(10_100, 10_101, history.FlushAll, "one"),
	},
	{
		"runs by a clock that is behind the last token", "",
		ticking(ran(1, 7_000_000, 10_000, ""), ran(2, 7_000_001, 10_900, ""), ran(1, 7_000_002, 11_900, "")).fault(10_100, 10_101, history.ClockBack, "one"),
	},
	{"runs by a clock that is behind a token that nobody knows of", "", setBack(10_900)},
	{"two runs in one interval when the clock has caught up", TickTwice, setBack(12_900)},
	{
		"two runs in one interval with a clock that steps", TickTwice,
		ticking(ran(1, 7_000_000, 10_000, ""), ran(2, 7_900_000, 10_900, "")).fault(10_100, 10_101, history.ClockForward, "one"),
	},
	{"an interval that is found spent", "", ticking(ran(1, 7_000_000, 10_000, ""), spent(2, 10_500, 500))},
	{"an interval that is found spent by nobody", TickMissed, ticking(ran(1, 7_000_000, 10_000, ""), spent(2, 11_500, 500))},
	{"an interval that is found spent by a run that gave it back", TickMissed, ticking(ran(1, 7_000_000, 10_000, "unspent"), spent(2, 10_500, 500))},
	{
		"an interval that is found spent by an earlier run", "",
		ticking(held{w: 1, token: 7_000_000, every: 1000, call: 10_000, got: 10_001, trusted: 10_900, releasing: 11_600, released: 11_601}, spent(2, 11_500, 500)),
	},
	{
		"an interval that is found spent by an earlier run that has ended", TickMissed,
		ticking(held{w: 1, token: 7_000_000, every: 1000, call: 10_000, got: 10_001, trusted: 10_900, releasing: 11_300, released: 11_301}, spent(2, 11_500, 500)),
	},
	{
		"an interval that is found spent by one that was killed", "",
		ticking(held{w: 1, id: 5, every: 1000, call: 11_000, died: 11_001}, spent(2, 11_500, 500)),
	},
}
