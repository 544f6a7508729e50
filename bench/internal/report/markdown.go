package report

import (
	"fmt"
	"strings"
)

// Markdown writes the page.
func (r Results) Markdown() string {
	var b strings.Builder
	b.WriteString("# Benchmarks\n\n")
	r.section(&b, "pair", "Uncontended pair", []string{"pairs/s", "p50 us", "p99 us", "server us/pair", "commands/pair", "bytes/pair"})
	r.section(&b, "hot", "One hot lock", []string{"grants/s", "gap p50 us", "gap p99 us", "longest wait ms", "Jain", "commands/grant", "bytes/grant", "server us/grant"})
	r.section(&b, "nested", "Nested pair", []string{"pairs/s", "mean ns", "p50 us", "server us/pair", "commands/pair"})
	r.section(&b, "link", "Hand-off over a link", []string{"round trip p50 us", "hand-off p50 us", "hand-off p99 us"})
	r.section(&b, "rw", "Read mostly", []string{"holds/s", "reads/s", "writes/s", "longest write wait ms"})
	r.section(&b, "depth", "Queue depth", []string{"hand-offs/s", "server us/hand-off", "server us/script", "commands/hand-off", "joins/s"})
	r.section(&b, "held", "Held locks", []string{"goroutines/lock", "bytes/lock", "of these stacks", "CPU ms", "CPU %", "commands/s", "server ms", "latest renewal, late s", "acquired/s"})
	r.section(&b, "memory", "Memory in Redis", []string{"held bytes", "held keys", "idle bytes", "idle keys", "idle for s"})
	return b.String()
}

func (r Results) section(b *strings.Builder, workload, title string, metrics []string) {
	of := r.where(query{workload: workload})
	if len(of) == 0 {
		return
	}
	fmt.Fprintf(b, "## %s\n\n", title)
	for _, c := range of.distinct(byCase) {
		for _, regime := range of.where(query{kase: c}).distinct(byRegime) {
			fmt.Fprintf(b, "### %s, %s\n\n", c, regime)
			of.table(b, query{kase: c, regime: regime}, metrics)
		}
	}
}
