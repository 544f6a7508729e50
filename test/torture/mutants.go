package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/relock-go/relock/test/torture/mutant"
)

// mutants sees to it that the checker finds every broken lock out.
func mutants(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("mutants", flag.ExitOnError)
	only := flags.String("only", "", "those whose name contains this")
	seed := flags.Uint64("seed", 1, "from which the schedule of faults follows")
	verbose := flags.Bool("v", false, "say what happens")
	_ = flags.Parse(args)
	log := io.Discard
	if *verbose {
		log = os.Stderr
	}
	var missed []error
	for _, m := range mutant.All {
		if !strings.Contains(m.Name, *only) {
			continue
		}
		caught, err := catch(ctx, m, *seed, log)
		if err != nil {
			fmt.Printf("MISSED  %s: %v\n", m.Name, err)
			missed = append(missed, err)
			continue
		}
		fmt.Printf("caught  %-60s %5.1fs  %s\n", m.Name, caught.After.Seconds(), caught.By.Name)
	}
	return errors.Join(missed...)
}

// catch builds a mutant and tries it, in a directory of its own.
func catch(ctx context.Context, m mutant.Mutant, seed uint64, log io.Writer) (mutant.Catch, error) {
	dir, err := os.MkdirTemp("", "relock-mutant-")
	if err != nil {
		return mutant.Catch{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	module, err := os.Getwd()
	if err != nil {
		return mutant.Catch{}, err
	}
	begin := time.Now()
	bin, err := m.Build(ctx, module, dir)
	if err != nil {
		return mutant.Catch{}, err
	}
	_, _ = fmt.Fprintf(log, "%s: built in %v\n", m.Name, time.Since(begin).Round(time.Millisecond))
	return m.Catch(ctx, bin, filepath.Join(dir, "runs"), seed, log)
}
