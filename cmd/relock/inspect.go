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

` + serverHelp

func (t *tool) info(ctx context.Context, args []string) int {
	return t.inspect(ctx, flagSet(), args, infoHelp, func(l *relock.Lock) error {
		info, err := l.Info(ctx)
		if err != nil {
			return err
		}
		t.print(l.Name(), info)
		return nil
	})
}

func (t *tool) print(name string, info relock.Info) {
	if len(info.Holders) == 0 {
		t.say("%s is free\n", name)
	}
	for _, h := range info.Holders {
		t.say("%s is held by %s\n", name, describe(info.Kind, h))
	}
	// A free lock may become another kind.
	if len(info.Holders) > 0 || info.Waiters > 0 {
		t.say("kind: %s\n", info.Kind)
	}
	t.say("%d waiting\n", info.Waiters)
}

// describe quotes the owner: it is any text, and may hold what a terminal obeys.
func describe(kind string, h relock.Holder) string {
	mode := ""
	switch {
	case h.Read:
		mode = "reading, "
	case shared(kind):
		mode = "writing, "
	}
	return fmt.Sprintf("%q: %sholds %d, token %d, lease %v", h.Owner, mode, h.Holds, h.Token, h.TTL.Round(time.Millisecond))
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
		if len(waiters) == 0 {
			t.say("nobody waits for %s\n", l.Name())
		}
		table := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
		for i, w := range waiters {
			mode := "lock"
			switch {
			case w.Read:
				mode = "read"
			case shared(info.Kind):
				mode = "write"
			}
			_, _ = fmt.Fprintf(table, "%d\t%q\t%s\tfor %v\n", i+1, w.Owner, mode, w.Age.Round(time.Millisecond))
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
		if !removed || len(before.Holders) == 0 {
			t.say("%s: there was nothing to remove\n", l.Name())
			return nil
		}
		for _, h := range before.Holders {
			t.say("%s: removed %s\n", l.Name(), describe(before.Kind, h))
		}
		return nil
	})
}

// inspect calls fn with the lock that the arguments name.
func (t *tool) inspect(ctx context.Context, fs *flag.FlagSet, args []string, help string, fn func(*relock.Lock) error) int {
	var s server
	s.flags(fs, t.env)
	if status, ok := t.parse(fs, args, help); !ok {
		return status
	}
	if fs.NArg() != 1 {
		return t.fail(usageError{fmt.Errorf("want one NAME after the flags, not %q", fs.Args())})
	}
	l, err := s.connect(ctx)
	if err != nil {
		return t.fail(err)
	}
	defer l.close()
	if err := fn(l.locks.NewLock(fs.Arg(0))); err != nil {
		return t.fail(err)
	}
	return 0
}
