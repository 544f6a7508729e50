// Unnoticed looks for code that no test needs. In a copy of the module it makes small changes that can be switched on:
// a branch that is never taken, an operand that is taken out, a statement that is skipped. It finds out which tests
// pass through each change, switches one change after the other on, and runs those tests. It lists the changes that all
// of them passed with: each is code that can go, or a promise that no test holds, or saves time only.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

func main() {
	limit := flag.Duration("for", time.Hour, "how long changes are tried")
	seed := flag.Int64("seed", 1, "decides the order in which changes are tried")
	most := flag.Duration("most", 10*time.Second, "how long the tests of one change may take; a change with more tests stays undecided")
	tests := flag.String("tests", "./test/contract,./test/conformance,./test/schedules,./test/transport,./test/inbox,./test/wire,./test/explore,./relocktest,./redisson,./internal/...",
		"packages whose tests are run, separated by commas")
	flag.Usage = func() {
		fmt.Fprintf(os.Stderr, "usage: go run ./test/unnoticed [flags] [folder ...]\n\nfolders hold the code that is changed: . and internal/room by default. Run it in the module's root.\n\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	folders := flag.Args()
	if len(folders) == 0 {
		folders = []string{".", "internal/room"}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	s := &search{folders: folders, packages: strings.Split(*tests, ","), seed: *seed, limit: *limit, most: *most, log: os.Stderr}
	results, err := s.run(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "unnoticed:", err)
		os.Exit(1)
	}
	report(results)
}

// report prints the changes that no test has noticed, and how many there are of each verdict.
func report(results []result) {
	slices.SortFunc(results, func(a, b result) int { return a.N - b.N })
	count := map[verdict]int{}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, r := range results {
		count[r.verdict]++
		if r.verdict == passed || r.verdict == unreached {
			_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", r.verdict, r.Place, r.Func, r.Kind, r.Text)
		}
	}
	_ = table.Flush()
	_, _ = fmt.Fprintf(os.Stdout, "%d changes were tried: %d noticed, %d not noticed by any test that passes through them, %d that no test reaches, %d undecided\n",
		len(results), count[noticed], count[passed], count[unreached], count[undecided])
}
