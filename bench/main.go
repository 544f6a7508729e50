// Command bench measures relock beside other locks on one Redis, which it starts
// itself, and writes what it saw to a page.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/relock-go/relock/bench/internal/host"
	"github.com/relock-go/relock/bench/internal/load"
	"github.com/relock-go/relock/bench/internal/report"
	"github.com/relock-go/relock/bench/internal/rival"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == host.SpinFlag {
		exit(host.Spin(os.Args[2]))
	}
	if len(os.Args) == 3 && os.Args[1] == load.HoldFlag {
		exit(load.Hold(context.Background(), os.Args[2], os.Stdin, os.Stdout))
	}
	if len(os.Args) == 3 && os.Args[1] == load.TurnFlag {
		exit(load.Turn(context.Background(), os.Args[2], os.Stdin, os.Stdout))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	exit(err)
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

const published = "1,16,256,1024" // numbers of callers in a whole run

// asked is what the command line asks for.
type asked struct {
	rounds  int
	window  time.Duration
	callers []int // of the workload of uncontended pairs
	sizes   []int // of the workload of held locks
	heldTTL time.Duration
	match   *regexp.Regexp
	whole   bool // every case, for as long as a figure is worth publishing takes
	out     string
	java    string // folder of Redisson's program
}

func parse() (a asked, err error) {
	rounds := flag.Int("rounds", 5, "rounds of each case")
	seconds := flag.Float64("seconds", 0.4, "window of the shortest workloads; others take a multiple")
	only := flag.String("only", "", "run the cases whose `regexp` matches, as in 'hot|pair 256'")
	quick := flag.Bool("quick", false, "see that everything runs: two rounds, short windows")
	out := flag.String("out", "", "write to this `folder`; otherwise docs/, or out/ where the run was not a whole one")
	java := flag.String("redisson", filepath.Join("..", "redisson", "interop", "out", "4.7.0"), "`folder` of Redisson's program, which Maven has built; it is left out without java")
	callers := flag.String("callers", published, "`numbers` of those that lock and unlock at a time")
	flag.Parse()
	a = asked{sizes: []int{1000, 10_000, 100_000}, heldTTL: 30 * time.Second, whole: !*quick && *only == "" && *callers == published, out: *out, java: *java}
	if *quick {
		a.sizes, a.heldTTL = []int{1000, 10_000}, 3*time.Second
		*rounds, *seconds = 2, 0.05
	}
	a.rounds, a.window = *rounds, time.Duration(*seconds*float64(time.Second))
	if a.out == "" {
		a.out = filepath.Join("..", "docs")
		if !a.whole {
			a.out = "out"
		}
	}
	if a.callers, err = numbers(*callers); err != nil {
		return a, err
	}
	a.match, err = regexp.Compile(*only)
	return a, err
}

// numbers reads a list of them.
func numbers(list string) (all []int, err error) {
	for s := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is not a number of callers", s)
		}
		all = append(all, n)
	}
	return all, nil
}

func run(ctx context.Context) error {
	asked, err := parse()
	if err != nil {
		return err
	}
	server, err := host.StartServer(ctx)
	if err != nil {
		return err
	}
	defer server.Stop()
	begin, facts := time.Now(), server.Facts(ctx)
	java, fact := host.Java(ctx, asked.java)
	var results report.Results
	b := &load.Bench{
		Server: server, Rivals: rival.All(), Rounds: asked.rounds, Window: asked.window,
		Callers: asked.callers, HeldSizes: asked.sizes, HeldTTL: asked.heldTTL, Redisson: java,
		Keep: func(s load.Sample) { results = append(results, s) },
		Note: func(format string, args ...any) {
			fmt.Fprintf(os.Stderr, "%6.1fs  "+format+"\n", append([]any{time.Since(begin).Seconds()}, args...)...)
		},
	}
	if err := b.All(ctx, asked.match); err != nil {
		return err
	}
	facts = append(facts, fact)
	return write(ctx, asked.out, results, report.Page{
		Command: command(), Whole: asked.whole, Rounds: asked.rounds, Window: b.Window, Took: time.Since(begin),
		Facts: facts, Rivals: append(b.Rivals, rival.RelockRW(), rival.RelockSemaphore(), rival.RelockSticky(), rival.Mutex(), rival.RelockCond(), rival.RelockMulti(), rival.RelockQuorum(), rival.RedsyncQuorum(), rival.RelockSentinel(), rival.RelockCluster(),
			rival.RelockAsRedisson(), rival.RelockAsRedissonFair(), rival.Redisson(), rival.RedissonFair()),
	})
}

// command is how this run was asked for, without the path of the binary.
func command() string {
	return strings.Join(append([]string{"bench"}, os.Args[1:]...), " ")
}

func write(ctx context.Context, dir string, results report.Results, page report.Page) (err error) {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if page.Plots, err = results.WritePlots(filepath.Join(dir, "benchmarks")); err != nil {
		return err
	}
	file := filepath.Join(dir, "benchmarks", "targets.md")
	text, tables := results.Markdown(page), results.Tables(page)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "benchmarks", "tables.md"), []byte(tables), 0o644); err != nil {
		return err
	}
	if !page.Whole {
		fmt.Print(text, tables)
	}
	fmt.Fprintf(os.Stderr, "%6.1fs  wrote %s\n", page.Took.Seconds(), file)
	return nil
}
