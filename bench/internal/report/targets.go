package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/relock-go/relock/bench/internal/load"
	"github.com/relock-go/relock/bench/internal/rival"
	"github.com/relock-go/relock/bench/internal/stat"
)

// A target is one number that is to be reached. Ratios are of the same round.
type target struct {
	what, want string
	met        func(median float64) bool
	value      func(r Results) []float64 // by round
	regimes    []string                  // value's results are of each; none: of load.Asleep
}

func atMost(limit float64) func(float64) bool  { return func(v float64) bool { return v <= limit } }
func atLeast(limit float64) func(float64) bool { return func(v float64) bool { return v >= limit } }

var (
	plain     = rival.Relock().Name
	fair      = rival.RelockFair().Name
	semaphore = rival.RelockSemaphore().Name
	sticky    = rival.RelockSticky().Name
	byHand    = rival.ByHand().Name
	rueidis   = rival.Rueidislock().Name
	libraries = []string{rival.Redislock().Name, rival.Redsync().Name, rueidis}
	others    = append(slices.Clone(libraries), byHand)
	both      = []string{load.Asleep, load.Awake}
)

// What is measured of a turn.
const (
	handOff = "hand-off p50 us"
	wait    = "wait p50 us"
	whole   = "unlock, wait p50 us"
	atOnce  = "at once p50 us"
)

// of returns one rival's metric.
func of(workload, kase, name, metric string) func(Results) []float64 {
	return func(r Results) []float64 { return r.rounds(query{workload: workload, kase: kase, rival: name}, metric) }
}

// best returns in each round the value of the best of some rivals.
func best(workload, kase string, names []string, metric string, better func(a, b float64) float64) func(Results) []float64 {
	return func(r Results) (out []float64) {
		for _, name := range names {
			for i, v := range of(workload, kase, name, metric)(r) {
				for len(out) <= i {
					out = append(out, math.NaN())
				}
				switch {
				case math.IsNaN(out[i]):
					out[i] = v
				case !math.IsNaN(v):
					out[i] = better(out[i], v)
				}
			}
		}
		return out
	}
}

func ratio(a, b func(Results) []float64) func(Results) []float64 {
	return func(r Results) (out []float64) {
		over, under := a(r), b(r)
		for i := range min(len(over), len(under)) {
			out = append(out, over[i]/under[i])
		}
		return out
	}
}

func higher(a, b float64) float64 { return max(a, b) }
func lower(a, b float64) float64  { return min(a, b) }

const (
	tight  = "4 x 16, tight"
	slow   = "4 x 16, 2ms"
	single = "32 x 1, tight"
)

// A list of targets is added to by these.
type list []target

func (l *list) add(what, want string, met func(float64) bool, value func(Results) []float64, regimes ...string) {
	*l = append(*l, target{what, want, met, value, regimes})
}

// hot adds a target of the contended lock: one rival's metric over the best of others.
func (l *list) hot(what, kase, metric, want string, met func(float64) bool, name string, against []string, better func(a, b float64) float64) {
	l.add(what, want, met, ratio(of("hot", kase, name, metric), best("hot", kase, against, metric, better)), both...)
}

// targets are those of every run; how many locks were held is read from its results.
func targets(r Results) []target {
	var l list
	l.alone()
	l.elsewhere(r)
	l.nested()
	l.several()
	l.signalled()
	l.contended()
	l.linked()
	l.besideRedisson()
	if n := r.mostHeld(); n != "" {
		l.held(n)
	}
	l.stored()
	return l
}

// alone are targets of a lock that nobody else wants.
func (l *list) alone() {
	l.add("uncontended pair: network commands", "2", func(v float64) bool { return math.Abs(v-2) < 0.05 }, of("pair", "1", plain, "commands/pair"), both...)
	l.add("keys of a held lock that nobody waits for", "1, the lock's own", atMost(1), of("memory", "1", plain, "held keys"))
	p50 := ratio(of("pair", "1", plain, "p50 us"), of("pair", "1", byHand, "p50 us"))
	l.add("uncontended pair: p50 of 1 goroutine / by hand", "≤ 1.25", atMost(1.25), p50, both...)
	l.add("uncontended pair: server's own time, µs", "stated", nil, of("pair", "1", plain, "server us/pair"), both...)
	l.add("uncontended pair of a semaphore: p50 / that of a lock", "≤ 1.3", atMost(1.3), ratio(of("pair", "1", semaphore, "p50 us"), of("pair", "1", plain, "p50 us")), both...)
	l.add("pair with Sticky(): p50, µs", "≤ 1.0", atMost(1), of("pair", "1", sticky, "p50 us"), both...)
	// Who takes the lock a million times a second is ahead of the clock by which tokens are given, and asks for more.
	l.add("pair with Sticky(): commands", "≤ 0.01", atMost(0.01), of("pair", "1", sticky, "commands/pair"), both...)
	l.turns()
	crowd := func(n, want string, met func(float64) bool) {
		l.add("uncontended pairs/s at "+n+" / best rival", want, met,
			ratio(of("pair", n, plain, "pairs/s"), best("pair", n, others, "pairs/s", higher)), both...)
	}
	crowd("16", "≥ 1.0", atLeast(1))
	crowd("256", "≥ 1.5", atLeast(1.5))
	crowd("1024", "≥ 1.5", atLeast(1.5))
}

// elsewhere are targets of the pair by Sentinel and on a Cluster, beside that on one server.
func (l *list) elsewhere(r Results) {
	for _, n := range r.where(query{workload: "elsewhere"}).distinct(byCase) {
		for _, name := range []string{rival.RelockSentinel().Name, rival.RelockCluster().Name} {
			l.add("uncontended pairs/s at "+n+", "+name+" / on one server", "≥ 0.8", atLeast(0.8),
				ratio(of("elsewhere", n, name, "pairs/s"), of("elsewhere", n, plain, "pairs/s")), both...)
		}
	}
}

// turns are targets of two processes that take turns with a lock, with Sticky() beside without.
func (l *list) turns() {
	for _, kase := range []string{load.OneHost, "link 1ms"} {
		regimes := both
		if kase != load.OneHost {
			regimes = nil
		}
		beside := func(what, want string, met func(float64) bool, metric, against string) {
			l.add("two processes in turn, "+kase+": "+what, want, met, ratio(of("turns", kase, sticky, metric), of("turns", kase, plain, against)), regimes...)
		}
		beside("hand-off to one who waits, with Sticky() / without", "≤ 1.5", atMost(1.5), handOff, handOff)
		beside("wait of one who asks later, with Sticky() / hand-off without", "≤ 1.5", atMost(1.5), wait, handOff)
		beside("Unlock and wait of one who asks later, with Sticky() / without", "≤ 1.5", atMost(1.5), whole, whole)
		beside("Unlock and wait of one who asks at once, with Sticky() / without", "stated", nil, atOnce, atOnce)
		beside("wait of one who asks later, with Sticky() / without", "stated", nil, wait, wait)
	}
}

// several are targets of what is several locks, in pairs of one.
func (l *list) several() {
	of := func(name string) func(Results) []float64 {
		return ratio(of("several", "1", name, "p50 us"), of("several", "1", plain, "p50 us"))
	}
	l.add("Multi of 3 names: p50 / that of a lock", "≤ 3.2", atMost(3.2), of(rival.RelockMulti().Name), both...)
	l.add("Quorum of 3 servers: p50 / that of a lock", "≤ 2.2", atMost(2.2), of(rival.RelockQuorum().Name), both...)
	l.add("redsync with these 3 servers: p50 / that of a lock of relock", "stated", nil, of(rival.RedsyncQuorum().Name), both...)
}

// signalled is how soon who was signalled runs, beside who was handed a fair lock.
func (l *list) signalled() {
	fairly := of("signal", "1", fair, handOff)
	l.add("signal to running waiter, from the signaller's unlock: p50 / a hand-off of Fair()", "≤ 1.3", atMost(1.3), ratio(of("signal", "1", rival.RelockCond().Name, handOff), fairly), both...)
	l.add("the same from the signal, which is a round trip before", "stated", nil, ratio(of("signal", "1", rival.RelockCond().Name, "signal, unlock p50 us"), fairly), both...)
}

func (l *list) nested() {
	l.add("nested / uncontended pair: mean time", "≤ 1.0", atMost(1), ratio(of("nested", "1", load.Nested, "mean ns"), of("nested", "1", load.Outer, "mean ns")), both...)
	l.add("nested pair with LocalReentry(): mean, ns", "< 500", func(v float64) bool { return v < 500 }, of("nested", "1", load.LocalReentry, "mean ns"), both...)
	l.add("nested pair with LocalReentry(): commands", "0", func(v float64) bool { return v < 0.001 }, of("nested", "1", load.LocalReentry, "commands/pair"), both...)
}

// contended are targets of a lock that everybody wants.
func (l *list) contended() {
	l.hot("hot lock, 4 x 16, tight: grants/s / best of all others", tight, "grants/s", "≥ 15", atLeast(15), plain, others, higher)
	l.add("the same: Jain", "≥ 0.95", atLeast(0.95), of("hot", tight, plain, "Jain"), both...)
	l.hot("the same: longest wait / best of all others", tight, "longest wait ms", "≤ 0.2", atMost(0.2), plain, others, lower)
	l.hot("the same with Fair(): grants/s / best library", tight, "grants/s", "≥ 1.2", atLeast(1.2), fair, libraries, higher)
	l.hot("the same with Fair(): grants/s / by hand", tight, "grants/s", "≥ 1.0", atLeast(1), fair, []string{byHand}, higher)
	l.add("the same with Fair(): Jain", "≥ 0.99", atLeast(0.99), of("hot", tight, fair, "Jain"), both...)
	l.hot("the same with Fair(): longest wait / best of all others", tight, "longest wait ms", "≤ 0.2", atMost(0.2), fair, others, lower)
	l.hot("hot lock, 4 x 16, 2 ms: grants/s / best of all others", slow, "grants/s", "≥ 1.1", atLeast(1.1), plain, others, higher)
	l.add("the same: gap p50, µs", "< 30", func(v float64) bool { return v < 30 }, of("hot", slow, plain, "gap p50 us"), both...)
	l.hot("hot lock, 32 x 1, tight, Fair(): grants/s / rueidislock", single, "grants/s", "≥ 4", atLeast(4), fair, []string{rueidis}, higher)
	l.add("the same: network commands a grant", "≤ 2.1", atMost(2.1), of("hot", single, fair, "commands/grant"), both...)
	for _, kase := range []string{slow, "32 x 1, 2ms"} {
		l.hot("hot lock, "+kase+", Fair(): gap p50 / rueidislock", kase, "gap p50 us", "≤ 0.6", atMost(0.6), fair, []string{rueidis}, higher)
	}
}

func (l *list) linked() {
	for _, kase := range []string{"1ms", "10ms"} {
		for _, name := range []string{plain, fair} {
			l.add("hand-off over a link of R = "+kase+", "+name+": p50 / (1.1 R + 0.3 ms), R as measured", "≤ 1", atMost(1), ratio(of("link", kase, name, handOff), bound(kase)))
		}
	}
}

// besideRedisson is how relock does beside Redisson, in Redisson's layout and in its own.
func (l *list) besideRedisson() {
	against := func(workload, kase, metric string, java rival.Rival, ours ...rival.Rival) {
		for _, r := range ours {
			l.add(workload+", "+kase+", "+r.Name+": "+metric+" / "+java.Name, "stated", nil, ratio(of(workload, kase, r.Name, metric), of(workload, kase, java.Name, metric)), both...)
		}
	}
	against("redisson pair", "1 x 1, tight", "pairs/s", rival.Redisson(), rival.Relock(), rival.RelockAsRedisson())
	against("redisson hot", tight, "grants/s", rival.Redisson(), rival.Relock(), rival.RelockAsRedisson())
	against("redisson fair", tight, "grants/s", rival.RedissonFair(), rival.RelockFair(), rival.RelockAsRedissonFair())
}

// held are targets of so many locks that are held.
func (l *list) held(n string) {
	l.add(n+" held locks: goroutines a lock", "0", atMost(0.001), of("held", n, plain, "goroutines/lock"))
	l.add(n+" held locks: bytes of the process a lock", "≤ 800", atMost(800), of("held", n, plain, "bytes/lock"))
	l.add(n+" held locks: latest renewal, s after its time", "≤ 1", atMost(1), of("held", n, plain, "latest renewal, late s"))
	l.add(n+" held locks: CPU / rueidislock with a tenth of them", "≤ 0.2", atMost(0.2), ratio(of("held", n, plain, "CPU ms"), of("held", n, rueidis, "CPU ms")))
}

// stored are figures of the memory in Redis.
func (l *list) stored() {
	l.add("memory in Redis of a held lock, bytes", "≤ 400", atMost(400), of("memory", "1", plain, "held bytes"))
	l.add("memory in Redis of an idle lock, bytes", "≤ 200", atMost(200), of("memory", "1", plain, "idle bytes"))
	l.add("an idle lock's keys are gone after, s", "the token keep time and a lease, 630", atMost(630), of("memory", "1", plain, "idle for s"))
}

// bound is what a hand-off over a link may take.
func bound(kase string) func(Results) []float64 {
	return func(r Results) (out []float64) {
		for _, rtt := range of("link", kase, rival.Ping().Name, "round trip p50 us")(r) {
			out = append(out, 1.1*rtt+300)
		}
		return out
	}
}

// mostHeld is the case with the most held locks, which is the last.
func (r Results) mostHeld() string {
	cases := r.where(query{workload: "held"}).distinct(byCase)
	if len(cases) == 0 {
		return ""
	}
	return cases[len(cases)-1]
}

// targetTable writes what was to be reached, and what was.
func (r Results) targetTable(b *strings.Builder) (met, missed int) {
	b.WriteString("| what | regime | target | measured | met |\n|---|---|---:|---:|---|\n")
	for _, t := range targets(r) {
		regimes := t.regimes
		if len(regimes) == 0 {
			regimes = []string{load.Asleep}
		}
		for _, regime := range regimes {
			got := stat.Of(t.value(r.where(query{regime: regime})))
			verdict := "–"
			switch {
			case math.IsNaN(got.Median):
				verdict = "not measured"
			case t.met == nil:
			case t.met(got.Median):
				verdict, met = "yes", met+1
			default:
				verdict, missed = "**no**", missed+1
			}
			fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", t.what, strings.TrimPrefix(regime, "cores "), t.want, cell(got), verdict)
		}
	}
	b.WriteString("\n")
	return met, missed
}
