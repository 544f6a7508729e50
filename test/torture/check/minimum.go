package check

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/relock-go/relock/test/torture/history"
)

// Minimums are what must have happened in a run for its silence to mean something.
type Minimums struct {
	Grants    int
	Faults    int
	Kinds     map[string]int // faults of each kind
	Sides     map[string]int // grants of each kind and mode, as "fair w"
	Effects   int
	Stale     int // effects that were stale, and refused
	Ambiguous int
	Cancelled int
	Losses    int
	Reentries int
	Orders    int
	Waits     int
	Signals   int            // for which somebody waited
	Items     int            // moved through buffers
	Overlaps  map[string]int // seen after faults of these kinds
	Failovers map[string]int // of each form of deployment
	Parted    map[string]int // overlaps after those
	Resumed   int            // tickets
	Ticks     int            // runs of Once
	Together  int            // holds that were taken with others
	Swept     []string       // what must have been looked for after the end
}

// full is the run that the published numbers are for.
const full = 30 * time.Minute

// Kinds are the kinds of faults, each of which a run must have.
var Kinds = []string{
	history.KillWorker, history.StopWorker, history.Cut, history.HalfOpen, history.Slow, history.Swallow, history.Delay,
	history.ClientKill, history.ScriptFlush, history.FlushAll, history.KillServer, history.RestartEmpty, history.StopServer,
	history.Failover, history.Migrate, history.ClockForward, history.ClockBack, history.Maxmemory, history.ForceUnlock,
	history.NoSubscribe, history.DeadPool,
}

// MinimumsFor scales what half an hour must show to another length.
func MinimumsFor(d time.Duration) *Minimums {
	part := func(n int) int { return int(int64(n) * int64(d/time.Second) / int64(full/time.Second)) }
	m := &Minimums{
		Grants: part(1_000_000), Faults: part(2_000), Kinds: map[string]int{}, Sides: map[string]int{}, Effects: part(200_000),
		Stale: 1, Ambiguous: max(1, part(100)), Cancelled: max(1, part(10_000)), Losses: max(1, part(100)),
		Reentries: max(1, part(10_000)), Orders: max(1, part(10_000)), Waits: max(1, part(10_000)), Signals: part(2_000), Items: part(5_000), Resumed: part(2_000), Ticks: part(500), Together: part(5_000), Overlaps: map[string]int{},
		Failovers: map[string]int{}, Parted: map[string]int{},
		Swept: []string{history.LeftKey, history.LeftGoroutine, history.LeftConnection},
	}
	for _, kind := range Kinds {
		m.Kinds[kind] = part(50)
	}
	for _, side := range []string{"plain w", "fair w", "rw w", "rw r", "fair rw w", "fair rw r", "semaphore s"} {
		m.Sides[side] = part(20_000)
	}
	for _, form := range []string{"sentinel", "cluster", "replicated"} {
		m.Failovers[form] = part(10)
	}
	if d >= 10*time.Minute {
		m.Parted["sentinel"] = 1
		for _, kind := range []string{history.FlushAll, history.RestartEmpty, history.Failover, history.ClockForward, history.ForceUnlock} {
			m.Overlaps[kind] = 1
		}
	}
	return m
}

// count fails a run in which too little happened.
func (k *checker) count() {
	m, r := k.opts.Minimums, &k.report
	if m == nil {
		m = MinimumsFor(r.Duration)
	}
	short := func(what string, n, least int) {
		if n < least {
			k.violation(&story{}, TooLittle, 0, 0, "%s: %d, at least %d are asked for", what, n, least)
		}
	}
	each := func(what string, n, least map[string]int) {
		for _, kind := range slices.Sorted(maps.Keys(least)) {
			short(fmt.Sprintf(what, kind), n[kind], least[kind])
		}
	}
	short("grants", r.Total(), m.Grants)
	each("grants of %s", r.Grants, m.Sides)
	short("faults", sum(r.Faults), m.Faults)
	each("faults of kind %s", r.Faults, m.Kinds)
	each("lease overlaps after %s", r.Overlaps, m.Overlaps)
	for _, form := range slices.Sorted(maps.Keys(m.Failovers)) {
		short("failovers, "+form, r.form(form).Failovers, m.Failovers[form])
		short("lease overlaps after a failover, "+form, r.form(form).Overlaps, m.Parted[form])
	}
	short("effects", r.Effects, m.Effects)
	short("stale effects refused", r.Stale, m.Stale)
	short("ambiguous outcomes", r.Ambiguous, m.Ambiguous)
	short("calls cancelled", r.Cancelled, m.Cancelled)
	short("holds lost", r.Losses, m.Losses)
	short("re-entries", r.Reentries, m.Reentries)
	short("turns on fair locks", r.Orders, m.Orders)
	short("waits for a free lock", r.Waits+r.Probes, m.Waits)
	m.primitives(r, short)
	for _, what := range m.Swept {
		short("inspections for a "+what+" left", r.Swept[what], 1)
	}
}

// primitives looks at what is beside locks.
func (m *Minimums) primitives(r *Report, short func(what string, n, least int)) {
	short("signals", r.Signals, m.Signals)
	short("items moved through buffers", r.Items, m.Items)
	short("tickets resumed", r.Resumed, m.Resumed)
	short("runs of Once", r.Ticks, m.Ticks)
	short("holds of several locks together", r.Together, m.Together)
}

// leaks reports what the rig found after the end.
func (k *checker) leaks() {
	for _, e := range k.sweeps {
		k.report.Swept[e.Fault]++
		if e.By > 0 {
			k.violation(&story{name: e.Lock}, Leaked, e.T, e.T, "%s has %d of kind %s left: %s", e.On, e.By, e.Fault, e.Err)
		}
	}
	for _, e := range k.leaked {
		k.violation(&story{name: e.Lock}, Leaked, e.T, e.T, "%s: %s", e.On, e.Err)
	}
}
