package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// row writes one row of a table.
func row(b *strings.Builder, cells ...any) {
	for _, c := range cells {
		fmt.Fprintf(b, "| %v ", c)
	}
	b.WriteString("|\n")
}

// Markdown is the report as tables.
func (r *Report) Markdown() string {
	var b strings.Builder
	verdict := "PASSED"
	if !r.OK() {
		verdict = "FAILED"
	}
	fmt.Fprintf(&b, "**%s**, seed %d, %v\n\n", verdict, r.Seed, r.Duration.Round(time.Second))
	r.numbers(&b)
	r.faults(&b)
	r.deployments(&b)
	r.violations(&b)
	return b.String()
}

// numbers says how much happened, and how much of it was checked.
func (r *Report) numbers(b *strings.Builder) {
	row(b, "what", "how many")
	row(b, "---", "---:")
	row(b, "events", fmt.Sprintf("%d in %d files, %d cut short", r.Events, r.Files, r.Torn))
	row(b, "locks", r.Locks)
	row(b, "calls", r.Calls)
	row(b, "grants", r.Total())
	for _, side := range slices.Sorted(maps.Keys(r.Grants)) {
		row(b, "grants, "+side, r.Grants[side])
	}
	row(b, "re-entries checked", r.Reentries)
	row(b, "calls cancelled", r.Cancelled)
	row(b, "ambiguous outcomes", r.Ambiguous)
	row(b, "holds lost", r.Losses)
	for _, why := range slices.Sorted(maps.Keys(r.Failed)) {
		row(b, "calls failed: "+why, r.Failed[why])
	}
	row(b, "operations checked with porcupine", fmt.Sprintf("%d in %d segments; %d locks and %d holds left out", r.Operations, r.Segments, r.NotModelled, r.LeftOut))
	row(b, "grants of semaphores put into an order", r.Permits)
	row(b, "turns on fair locks checked", r.Orders)
	row(b, "waits for a free lock checked", fmt.Sprintf("%d, and %d probes; longest %v", r.Waits, r.Probes, r.LongestWake))
	row(b, "waits on conditions", fmt.Sprintf("%d, and %d signals for which somebody waited", r.Awaits, r.Signals))
	row(b, "items moved through buffers", r.Items)
	row(b, "holds handed over", fmt.Sprintf("%d tickets, %d resumed", r.Tickets, r.Resumed))
	row(b, "runs of Once", fmt.Sprintf("%d, and %d calls that found the interval spent", r.Ticks, r.Spent))
	row(b, "holds of several locks together", fmt.Sprintf("%d, the longest wait %v", r.Together, r.LongestAll))
	row(b, "effects", fmt.Sprintf("%d, of which %d stale and refused", r.Effects, r.Stale))
	row(b, "tokens that fell where they may (limits.md)", r.TokensFell)
	row(b, "waits on conditions that a failover had lost", r.Unwaited)
	row(b, "holds passed on in a process that did not know of its loss yet", r.PassedOn)
	row(b, "locks with one holder for over a second", r.Kept)
	row(b, "scripts of more than 10 ms", fmt.Sprintf("%d, the longest %v (%s)", r.LongScripts, r.LongestScript, r.LongestScriptName))
	row(b, "pings of another client", fmt.Sprintf("%d, of 100 the slowest %v; of a server that nobody uses %v", r.Pings, r.SlowestPings, r.ControlPings))
	row(b, "inspections for leaks", sum(r.Swept))
}

func (r *Report) faults(b *strings.Builder) {
	fmt.Fprintf(b, "\n| faults | how many | lease overlaps after it |\n| --- | ---: | ---: |\n")
	for _, kind := range slices.Sorted(maps.Keys(r.Faults)) {
		row(b, kind, r.Faults[kind], r.Overlaps[kind])
	}
	row(b, "all", sum(r.Faults), fmt.Sprintf("%d, longest %v", sum(r.Overlaps), r.LongestOverlap))
}

func (r *Report) deployments(b *strings.Builder) {
	fmt.Fprintf(b, "\n| deployment | grants | failovers | lease overlaps after one |\n| --- | ---: | ---: | ---: |\n")
	for _, name := range slices.Sorted(maps.Keys(r.Forms)) {
		row(b, name, r.Forms[name].Grants, r.Forms[name].Failovers, r.Forms[name].Overlaps)
	}
}

func (r *Report) violations(b *strings.Builder) {
	fmt.Fprintf(b, "\n| violation | how many |\n| --- | ---: |\n")
	row(b, "lease overlap outside the named faults", r.Counts[LeaseOverlap])
	row(b, "fenced effect that was stale", r.Counts[StaleEffect])
	for _, name := range slices.Sorted(maps.Keys(r.Counts)) {
		if name != LeaseOverlap && name != StaleEffect {
			row(b, name, r.Counts[name])
		}
	}
	if len(r.Violations) > 0 {
		b.WriteString("\n")
	}
	for _, v := range r.Violations {
		fmt.Fprintf(b, "- %s\n", v)
	}
}
