package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/relock-go/relock/bench/internal/host"
	"github.com/relock-go/relock/bench/internal/rival"
)

// Page is what surrounds the results.
type Page struct {
	Command string
	Whole   bool // all workloads, at the lengths that the figures are meant to have
	Rounds  int
	Window  time.Duration
	Took    time.Duration
	Facts   []host.Fact
	Rivals  []rival.Rival
	Plots   []string
}

type section struct {
	workload, title, text string
	metrics               []string
	plots                 []string
}

var sections = []section{
	{
		workload: "pair", title: "Uncontended pair",
		text: "`Lock`, `Unlock` of a name that nobody else wants, by so many goroutines of one client, each with a name of its own. " +
			"`server us/pair` is the time in commands by the server's own statistics, without its reading and writing of sockets; client CPU is that of the program (getrusage).",
		metrics: []string{"pairs/s", "mean ns", "p50 us", "p99 us", "client CPU us/pair", "server us/pair", "commands/pair", "bytes/pair"},
		plots:   []string{"pairs.svg"},
	},
	{
		workload: "elsewhere", title: "By Sentinel, and on a Cluster",
		text: "The uncontended pair of relock by so many goroutines of one client: on one server, on the same server by a client of its Sentinel, and on a Cluster of three primaries. " +
			"The three primaries share the cores with the program, so a Cluster has less of them than elsewhere.",
		metrics: []string{"pairs/s", "p50 us", "p99 us", "client CPU us/pair"},
	},
	{
		workload: "nested", title: "Nested pair",
		text:    "A pair by an owner that holds already, and the outer pair of a named owner beside it; one goroutine. The mean is the window's length by the number of pairs.",
		metrics: []string{"mean ns", "p50 us", "pairs/s", "server us/pair", "commands/pair"},
	},
	{
		workload: "hot", title: "One hot lock",
		text: "`4 x 16` are 4 clients with connections of their own, as 4 processes would have, with 16 goroutines each. `tight` does nothing while it holds, `2ms` sleeps for that time. " +
			"A gap is the time from the call of `Unlock` by one holder to the return of `Lock` to the next, whoever that is. The longest wait includes the waits that the end of the window cut short, " +
			"so it cannot exceed the window by much: a wait as long as that means that somebody never got the lock. Jain's index over the goroutines' grants is 1 where all have the same, and 1/n where one has all. " +
			"`server us/grant` is the time in scripts and commands, CPU that of the processes, sockets and all.",
		metrics: []string{"grants/s", "gap p50 us", "gap p99 us", "wait p50 ms", "longest wait ms", "Jain", "commands/grant", "bytes/grant", "server us/grant", "server CPU us/grant", "client CPU us/grant"},
		plots:   []string{"hot-grants.svg", "hot-wait.svg", "hot-gap.svg", "hot-commands.svg"},
	},
	{
		workload: "link", title: "Hand-off over a link",
		text: "Two clients, each behind a link of its own with that round trip, take turns. Who gets the lock has been waiting for four round trips. " +
			"From the call of `Unlock` on one side to the return of `Lock` on the other: one round trip is what a message needs that the server passes on. A PING shows what the link really took.",
		metrics: []string{"round trip p50 us", "hand-off p50 us", "hand-off p99 us"},
		plots:   []string{"link.svg"},
	},
	{
		workload: "rw", title: "Read mostly",
		text:    "One in 20 is a write, each holds for 1 ms. The others have no read lock, and exclude readers as well.",
		metrics: []string{"holds/s", "reads/s", "writes/s", "longest write wait ms"},
	},
	{
		workload: "several", title: "Several locks",
		text:    "`Lock`, `Unlock` by one goroutine of what is several locks. `server us/pair`, commands and bytes are those of one of the servers.",
		metrics: []string{"pairs/s", "p50 us", "p99 us", "server us/pair", "commands/pair", "bytes/pair"},
	},
	{
		workload: "signal", title: "Signal",
		text: "Two clients. One waits on a condition, the other locks, signals and unlocks: from the call of `Signal` and from that of `Unlock` to the return of `Wait`. " +
			"Beside it a lock with `Fair()` that changes hands: from the call of `Unlock` to the return of `Lock`.",
		metrics: []string{"signal, unlock p50 us", "hand-off p50 us", "hand-off p99 us"},
	},
	{
		workload: "turns", title: "Two processes that take turns",
		text: "Two processes have one lock in turn, with `Sticky(5s)` and without. A hand-off is from the call of `Unlock` to the return of a `Lock` that has waited in the other process, for 5 ms and four round trips of its link. " +
			"Then the other process asks only so long after the `Unlock` has returned: its wait, the `Unlock` before, and both together. `kept` is how often the lock was still held then. " +
			"At once is both together where the other process asks as soon as it hears of the `Unlock`.",
		metrics: []string{"hand-off p50 us", "unlock p50 us", "wait p50 us", "unlock, wait p50 us", "kept", "at once p50 us"},
	},
	{
		workload: "redisson pair", title: "Beside Redisson: uncontended pair",
		text: "One thread. Redisson's clients run in a JVM of their own, which has worked for five windows before the first round, and measures what it does there. " +
			"Relock is in its own layout and in Redisson's, which [package redisson](../redisson.md) takes; Redisson's rows are left out where there is no JVM.",
		metrics: []string{"pairs/s", "p50 us", "p99 us"},
	},
	{
		workload: "redisson hot", title: "Beside Redisson: one hot lock",
		text:    "4 clients with 16 threads or goroutines each. In Java those who wait when the window ends have the lock once more, and that wait counts.",
		metrics: []string{"grants/s", "wait p50 ms", "longest wait ms", "Jain"},
	},
	{
		workload: "redisson fair", title: "Beside Redisson: one hot fair lock",
		text:    "The same with fair locks.",
		metrics: []string{"grants/s", "wait p50 ms", "longest wait ms", "Jain"},
	},
	{
		workload: "depth", title: "Queue depth",
		text:    "200 hand-offs of a fair lock with so many waiters in the queue, of one client; who got the lock is followed by another waiter. Waiters of the others stand in no queue.",
		metrics: []string{"server us/hand-off", "server us/script", "commands/hand-off", "hand-offs/s", "joins/s"},
		plots:   []string{"depth.svg"},
	},
	{
		workload: "held", title: "Held locks",
		text: "A process of its own for each library holds so many locks, and does nothing else, for one TTL. The case is named for the locks of relock; rueidislock has a tenth. " +
			"CPU is that of the process (getrusage). Bytes are heap and stacks after a collection, less those before the first lock; handles and names are in them. " +
			"How late a renewal was is told by relock's own hook; for rueidislock the keys' time to live was sampled. One run of each, no rounds.",
		metrics: []string{"locks", "goroutines/lock", "bytes/lock", "of these stacks", "CPU ms", "CPU %", "commands/s", "server ms", "latest renewal, late s", "acquired/s"},
		plots:   []string{"held.svg"},
	},
	{
		workload: "memory", title: "Memory in Redis",
		text:    "`MEMORY USAGE` of all keys of one lock: held by one with nobody waiting, and after its last unlock. What an idle lock of relock keeps is its token counter, for the token keep time. A key without an end would fail the run.",
		metrics: []string{"held bytes", "held keys", "idle bytes", "idle keys", "idle for s"},
	},
}

// Markdown is the page of the targets and what was measured.
func (r Results) Markdown(p Page) string {
	var b strings.Builder
	b.WriteString("# Targets\n\n")
	fmt.Fprintf(&b, "Written by `%s` in %v; [bench/README.md](../../bench/README.md) tells how to repeat and read it. ", p.Command, p.Took.Round(time.Second))
	fmt.Fprintf(&b, "All locks were measured in turn in each of %d rounds, in windows of %v or a multiple of it, warm, on one Redis. A cell is the median of the rounds, and the smallest and largest. "+
		"Only ratios within this page mean something: the program, the server and the locks share the cores.\n\n", p.Rounds, p.Window)
	if !p.Whole {
		b.WriteString("> **Not a whole run.** Its windows are too short, or its workloads too few, for the figures to be quoted.\n\n")
	}
	b.WriteString("Two regimes: with cores left to sleep, a message to an idle core pays for waking it, as on a machine with little to do; with cores kept awake, a process on each core that runs only where nothing else wants to (SCHED_IDLE) keeps it from sleeping.\n\n")
	b.WriteString("## Targets\n\nRatios are taken within a round, then the median over the rounds, and the spread.\n\n")
	met, missed := r.targetTable(&b)
	fmt.Fprintf(&b, "%d met, %d not met. What stands in the way of most of these is in [decision 0017](../decisions/0017-what-limits.md), with measurements of earlier runs.\n\n", met, missed)
	b.WriteString("[All figures](tables.md) of every lock, with plots.\n\n")
	r.errorList(&b)
	b.WriteString("## Where and with what\n\n| | |\n|---|---|\n")
	for _, f := range p.Facts {
		fmt.Fprintf(&b, "| %s | %s |\n", f.What, f.Value)
	}
	b.WriteString("\n| lock | settings |\n|---|---|\n")
	for _, one := range p.Rivals {
		fmt.Fprintf(&b, "| %s | %s |\n", one.Name, one.Settings)
	}
	b.WriteString("\nLeases of 30 s, but where said otherwise. All in Go but rueidislock and sync.Mutex use go-redis with its default options: a pool of 10 connections a core.\n")
	return b.String()
}

// Tables is the page of all figures, in one folder with the plots and the page of Markdown.
func (r Results) Tables(p Page) string {
	var b strings.Builder
	b.WriteString("# All figures\n\nThe figures behind [the targets](targets.md), which say where and with what they were measured.\n\n")
	b.WriteString("A † marks a lock that got too little done in some round for its figures to mean much. Errors of every kind are counted.\n\n")
	for _, s := range sections {
		r.section(&b, s, p.Plots)
	}
	return b.String()
}

func (r Results) section(b *strings.Builder, s section, plots []string) {
	of := r.where(query{workload: s.workload})
	if len(of) == 0 {
		return
	}
	fmt.Fprintf(b, "## %s\n\n%s\n\n", s.title, s.text)
	for _, file := range s.plots {
		if slices.Contains(plots, file) {
			fmt.Fprintf(b, "![%s](%s)\n\n", strings.TrimSuffix(file, ".svg"), file)
		}
	}
	for _, c := range of.distinct(byCase) {
		for _, regime := range of.where(query{kase: c}).distinct(byRegime) {
			if c == "1" && s.workload != "pair" {
				fmt.Fprintf(b, "%s:\n\n", regime)
			} else {
				fmt.Fprintf(b, "%s, %s:\n\n", c, regime)
			}
			of.table(b, query{kase: c, regime: regime}, s.metrics)
		}
	}
}

// errorList tells what went wrong: nothing is left out of the count.
func (r Results) errorList(b *strings.Builder) {
	begun := false
	for _, s := range r {
		if s.Errors == 0 {
			continue
		}
		if !begun {
			b.WriteString("## Errors\n\n| workload | lock | round | count | the first |\n|---|---|---:|---:|---|\n")
			begun = true
		}
		fmt.Fprintf(b, "| %s %s, %s | %s | %d | %d | %s |\n", s.Workload, s.Case, s.Regime, s.Rival, s.Round+1, s.Errors, strings.ReplaceAll(s.Err, "|", "\\|"))
	}
	if begun {
		b.WriteString("\n")
	}
}
