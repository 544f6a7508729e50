package check

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// ErrFailed is the error of Command if the histories break a promise, or show too little.
var ErrFailed = errors.New("the verdict is FAILED")

// Command judges the histories of a run, as a command does, and prints the verdict. It writes files only where -out says.
// An error that is not ErrFailed means that there is no verdict.
func Command(args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("judge", flag.ContinueOnError)
	out := flags.String("out", "", "where the summary and the events around violations are written; empty: nowhere")
	part := flags.Bool("part", false, "judge a part of a run: do not ask whether enough happened")
	slack := flags.Duration("slack", 0, "how much later than a third of the TTL a waiter may be woken; 0: 500ms")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("usage: judge [-out DIR] [-part] [-slack D] HISTORIES")
	}
	o := Options{WakeSlack: *slack, CutoutDir: *out}
	if *out == "" {
		o.Cutouts = -1
	}
	if *part {
		o.Minimums = &Minimums{}
	}
	report, err := Run(flags.Arg(0), o)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(stdout, report.Markdown()); err != nil {
		return err
	}
	if err := report.save(*out); err != nil {
		return err
	}
	if !report.OK() {
		return fmt.Errorf("%w: seed %d, histories in %s", ErrFailed, report.Seed, flags.Arg(0))
	}
	return nil
}

// save writes the summary, for people and for programs.
func (r *Report) save(dir string) error {
	if dir == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "summary.json"), text, 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "summary.md"), []byte(r.Markdown()), 0o600)
}
