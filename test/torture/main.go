// Command torture runs relock's locks in several processes under faults, and
// judges from their histories whether the locks kept what they promise.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/test/torture/check"
	"github.com/relock-go/relock/test/torture/rig"
	"github.com/relock-go/relock/test/torture/server"
	"github.com/relock-go/relock/test/torture/worker"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	redis.SetLogger(silent{}) // servers that are down are what this is about
	name, args := "run", os.Args[1:]
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
	}
	var err error
	switch name {
	case "worker":
		os.Exit(worker.Run())
	case "run":
		err = run(ctx, args)
	case "judge":
		err = check.Command(args, os.Stdout)
	case "check":
		err = again(args)
	case "mutants":
		err = mutants(ctx, args)
	default:
		err = fmt.Errorf("no such command: %s; there are run, judge, check and mutants", name)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "torture:", err)
		os.Exit(status(name, err))
	}
}

// status is 1, or 2 if judge has come to no verdict.
func status(name string, err error) int {
	if name == "judge" && !errors.Is(err, check.ErrFailed) {
		return 2
	}
	return 1
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// options are those of a run, from the command line.
func options(args []string) (o rig.Options, err error) {
	flags := flag.NewFlagSet("torture", flag.ExitOnError)
	flags.DurationVar(&o.For, "for", 2*time.Minute, "how long")
	flags.Uint64Var(&o.Seed, "seed", uint64(time.Now().UnixNano())%1_000_000, "from which the schedule of faults follows")
	flags.StringVar(&o.Dir, "dir", "", "where the histories go; empty: a new directory")
	flags.DurationVar(&o.Round, "round", 0, "how long each deployment is used")
	flags.IntVar(&o.Workers, "workers", 0, "processes")
	flags.BoolVar(&o.Calm, "calm", false, "no faults")
	flags.StringVar(&server.Program, "server", server.Program, "what is started, as a newer one, or Valkey's")
	forms := flags.String("forms", "", "deployments, by comma: standalone, replicated, cluster, skewed, sentinel")
	kinds := flags.String("kinds", "", "faults, by comma; empty: all")
	loads := flags.String("loads", "", "workloads, by comma; empty: all")
	_ = flags.Parse(args)
	if *forms != "" {
		o.Forms = strings.Split(*forms, ",")
	}
	if *kinds != "" {
		o.Kinds = strings.Split(*kinds, ",")
	}
	if *loads != "" {
		o.Actors = map[string]int{}
		for name := range strings.SplitSeq(*loads, ",") {
			o.Actors[name] = 6
		}
	}
	if o.Dir == "" {
		o.Dir, err = os.MkdirTemp("", "relock-torture-")
	}
	o.Log = os.Stderr
	return o, err
}

func run(ctx context.Context, args []string) error {
	o, err := options(args)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "torture: -for %v -seed %d -dir %s\n", o.For, o.Seed, o.Dir)
	result, err := rig.Run(ctx, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "torture: %d rounds, %d faults refused, %d workers crashed; judging\n", result.Rounds, len(result.Refused), len(result.Crashed))
	return again([]string{o.Dir})
}

// again judges the histories in a directory, and leaves the summary beside them.
func again(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: torture check DIR")
	}
	return check.Command([]string{"-out", args[0], args[0]}, os.Stdout)
}
