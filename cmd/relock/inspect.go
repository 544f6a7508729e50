//go:build unix

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/relock-go/relock"
)

const infoHelp = `relock info [flags] NAME: who holds the lock, of which kind it is, and how many wait

A holder is shown with how long it has held, and by whom: its label, which is the host and
the process by default, or what run's -label says.

` + serverHelp

func (t *tool) info(ctx context.Context, args []string) int {
	return t.inspect(ctx, flagSet(), args, infoHelp, func(l *relock.Lock) error {
		info, err := l.Info(ctx)
		if err != nil {
			return err
		}
		if t.json {
			t.tell(t.out, lockFormOf(info))
			return nil
		}
		t.print(l.Name(), info)
		return nil
	})
}

func (t *tool) print(name string, info relock.Info) {
	switch {
	case info.Resting > 0:
		t.say("%s is taken by nobody for another %v\n", name, info.Resting.Round(time.Millisecond))
	case len(info.Holders) == 0:
		t.say("%s is free\n", name)
	}
	for _, h := range info.Holders {
		t.say("%s is held by %s\n", name, describe(info.Kind, h))
	}
	// A free lock may become another kind.
	if len(info.Holders) > 0 || info.Waiters > 0 || info.Resting > 0 {
		t.say("kind: %s\n", info.Kind)
	}
	t.say("%d waiting\n", info.Waiters)
}

// describe quotes the owner and the label: they are any text, and may hold what a terminal obeys.
func describe(kind string, h relock.Holder) string {
	mode := ""
	switch {
	case h.Read:
		mode = "reading, "
	case shared(kind):
		mode = "writing, "
	}
	return fmt.Sprintf("%q: %sholds %d, token %d, lease %v, for %v%s", h.Owner, mode, h.Holds, h.Token,
		h.TTL.Round(time.Millisecond), h.Held.Round(time.Millisecond), by(h.Label))
}

// by says whose something is, where that is known.
func by(label string) string {
	if label == "" {
		return ""
	}
	return fmt.Sprintf(" by %q", label)
}

// shared says whether locks of that kind have readers and writers.
func shared(kind string) bool { return kind == "rw" || kind == "fair rw" }

const waitersHelp = `relock waiters [flags] NAME: who waits for the lock, for what, in order

` + serverHelp

func (t *tool) waiters(ctx context.Context, args []string) int {
	return t.inspect(ctx, flagSet(), args, waitersHelp, func(l *relock.Lock) error {
		waiters, err := l.Waiters(ctx)
		if err != nil {
			return err
		}
		info, err := l.Info(ctx) // for the kind, which stays as it is while somebody waits
		if err != nil {
			return err
		}
		if t.json {
			for i, w := range waiters {
				t.tell(t.out, waiterForm{l.Name(), i + 1, w.Owner, modeOf(info.Kind, w.Read), ms(w.Age), w.Label})
			}
			return nil
		}
		if len(waiters) == 0 {
			t.say("nobody waits for %s\n", l.Name())
		}
		table := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
		for i, w := range waiters {
			mode := modeOf(info.Kind, w.Read)
			_, _ = fmt.Fprintf(table, "%d\t%q\t%s\tfor %v%s\n", i+1, w.Owner, mode, w.Age.Round(time.Millisecond), by(w.Label))
		}
		return table.Flush()
	})
}

const unlockHelp = `relock unlock -force [flags] NAME: take the lock from whoever holds it

Its holder is told, but may work on for a moment beside the next one. This is for
an operator who knows that the holder is gone or must stop. A lock that is free
stays so, with exit status 0.

  -force        says that this is meant
` + serverHelp

var errForce = usageError{errors.New("unlock takes the lock away from its holder: say -force if that is meant")}

func (t *tool) unlock(ctx context.Context, args []string) int {
	fs := flagSet()
	force := fs.Bool("force", false, "")
	return t.inspect(ctx, fs, args, unlockHelp, func(l *relock.Lock) error {
		if !*force {
			return errForce
		}
		before, err := l.Info(ctx)
		if err != nil {
			return err
		}
		removed, err := l.ForceUnlock(ctx)
		if err != nil {
			return err
		}
		t.removed(l.Name(), before, removed)
		return nil
	})
}

// removed says what there was before.
func (t *tool) removed(name string, before relock.Info, removed bool) {
	if t.json {
		form := removedForm{name, []holderForm{}, 0}
		if removed {
			form = removedForm{name, holdersForm(before.Kind, before.Holders), ms(before.Resting)}
		}
		t.tell(t.out, form)
		return
	}
	if t.quiet {
		return
	}
	if removed && before.Resting > 0 {
		t.say("%s: it was taken by nobody for another %v, and is free\n", name, before.Resting.Round(time.Millisecond))
		return
	}
	if !removed || len(before.Holders) == 0 {
		t.say("%s: there was nothing to remove\n", name)
		return
	}
	for _, h := range before.Holders {
		t.say("%s: removed %s\n", name, describe(before.Kind, h))
	}
}

// inspect calls fn with the lock that the arguments name.
func (t *tool) inspect(ctx context.Context, fs *flag.FlagSet, args []string, help string, fn func(*relock.Lock) error) int {
	var s server
	s.flags(fs, t.env)
	words, more, status, ok := t.parse(fs, args, 1, help)
	if !ok {
		return status
	}
	if words = append(words, more...); len(words) != 1 {
		return t.fail(usageError{fmt.Errorf("want one NAME, not %q", words)})
	}
	l, err := s.connect(ctx)
	if err != nil {
		return t.fail(err)
	}
	defer l.close()
	if err := fn(l.locks.NewLock(words[0])); err != nil {
		return t.fail(err)
	}
	return 0
}
