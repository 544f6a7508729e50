//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/seam"
)

const infoAbout = `Shows how long each holder has held the lock, and its label: the text of -label, or host and
process by default.
`

func (t *tool) info(fs *flags) action {
	return t.inspect(fs, func(ctx context.Context, l *relock.Lock) error {
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
		t.say("%s is taken for another %v (no holder)\n", name, info.Resting.Round(time.Millisecond))
	case len(info.Holders) == 0:
		t.say("%s is free\n", name)
	}
	if info.Permits > 1 && len(info.Holders) > 1 {
		t.say("%s: %d permits are in use\n", name, info.Permits)
	}
	for _, h := range info.Holders {
		t.say("%s is held by %s\n", name, describe(info.Kind, h))
	}
	// A free lock may become another kind.
	if len(info.Holders) > 0 || info.Waiters > 0 || info.CondWaiters > 0 || info.Resting > 0 {
		t.say("kind: %s\n", info.Kind)
	}
	t.say("%d waiting\n", info.Waiters)
	if info.CondWaiters > 0 {
		t.say("%d waiting on conditions\n", info.CondWaiters)
	}
}

// describe quotes the owner and the label, because they are any text and may hold escape codes for a
// terminal.
func describe(kind string, h relock.Holder) string {
	mode := ""
	switch {
	case h.Read:
		mode = "reading, "
	case shared(kind):
		mode = "writing, "
	}
	permits := ""
	if h.Weight > 0 {
		permits = fmt.Sprintf(", permits %d", h.Weight)
	}
	return fmt.Sprintf("%q: %sholds %d%s, token %d, lease %v, held for %v%s", h.Owner, mode, h.Holds, permits, h.Token,
		h.TTL.Round(time.Millisecond), h.Held.Round(time.Millisecond), whose(h))
}

// whose returns " by ..." for the holder, or "" if that is unknown.
func whose(h relock.Holder) string {
	switch {
	case h.Detached:
		return " by a ticket that nobody has resumed"
	case h.Sticky:
		return by(h.Label) + " (sticky: may be idle)"
	}
	return by(h.Label)
}

// by says which client it is, or "" if the label is unknown.
func by(label string) string {
	if label == "" {
		return ""
	}
	return fmt.Sprintf(" by %q", label)
}

// shared reports whether locks of that kind have readers and writers.
func shared(kind string) bool { return kind == "rw" || kind == "fair rw" }

func (t *tool) waiters(fs *flags) action {
	return t.inspect(fs, func(ctx context.Context, l *relock.Lock) error {
		waiters, err := l.Waiters(ctx)
		if err != nil {
			return err
		}
		info, err := l.Info(ctx) // for the kind, which cannot change while somebody waits
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
		text := &strings.Builder{}
		table := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
		for i, w := range waiters {
			mode := modeOf(info.Kind, w.Read)
			_, _ = fmt.Fprintf(table, "%d\t%q\t%s\tfor %v%s\n", i+1, w.Owner, mode, w.Age.Round(time.Millisecond), by(w.Label))
		}
		_ = table.Flush() // a Builder never fails
		t.say("%s", text)
		return nil
	})
}

const unlockAbout = `relock tells the holder, but the holder may go on working for a moment while the next one
holds the lock. Use this only if the holder is gone or must stop. If the lock is free,
nothing happens, and the exit status is 0.

With -token or -owner, or both, relock ends only the grant of that holder, as info shows it.
Other readers, other runs of a semaphore and later holders keep their grants. If that
holder no longer holds the lock, nothing happens.
`

var errForce = usageError{errors.New("unlock takes the lock from its holder: add -force to confirm")}

func (t *tool) unlock(fs *flags) action {
	var force bool
	var which relock.Holder
	fs.BoolVar(&force, "force", false, "confirm the unlock")
	fs.Func("token", "N: only the holder with token N", func(s string) (err error) {
		which.Token, err = strconv.ParseInt(s, 10, 64)
		if err != nil || which.Token < 1 {
			return errors.New("must be a token that relock info shows")
		}
		return nil
	})
	fs.Func("owner", "ID: only the holder with owner ID", func(s string) error {
		if which.Owner = s; s == "" {
			return errors.New("must be an owner that relock info shows")
		}
		return nil
	})
	return t.inspect(fs, func(ctx context.Context, l *relock.Lock) error {
		if !force {
			return errForce
		}
		if which != (relock.Holder{}) {
			return t.unlockHolder(ctx, l, which)
		}
		ended, err := seam.ForceUnlock(ctx, l)
		if err != nil {
			return err
		}
		t.removed(ended.(relock.Info), "there was no holder to remove")
		return nil
	})
}

// unlockHolder ends the grant of one holder. It reads the lock first, so that it can report whom it has
// removed.
func (t *tool) unlockHolder(ctx context.Context, l *relock.Lock, which relock.Holder) error {
	there, err := l.Info(ctx)
	if err != nil {
		return err
	}
	ended := relock.Info{Name: there.Name, Kind: there.Kind}
	for _, h := range there.Holders {
		if which.Token != 0 && h.Token != which.Token || which.Owner != "" && h.Owner != which.Owner {
			continue
		}
		removed, err := l.ForceUnlockHolder(ctx, h)
		if err != nil {
			return err
		}
		if removed {
			ended.Holders = append(ended.Holders, h)
		}
	}
	t.removed(ended, "that holder does not hold the lock; nothing was changed")
	return nil
}

// removed reports what was ended, or that nothing was.
func (t *tool) removed(ended relock.Info, nothing string) {
	switch {
	case t.json:
		t.tell(t.out, removedForm{ended.Name, holdersForm(ended.Kind, ended.Holders), ms(ended.Resting)})
	case t.quiet:
	case ended.Resting > 0:
		t.say("%s: nobody held it; it was taken for another %v, and is now free\n", ended.Name, ended.Resting.Round(time.Millisecond))
	case len(ended.Holders) == 0:
		t.say("%s: %s\n", ended.Name, nothing)
	}
	if t.json || t.quiet {
		return
	}
	for _, h := range ended.Holders {
		t.say("%s: removed %s\n", ended.Name, describe(ended.Kind, h))
	}
}

// inspect returns an action that calls fn with the lock that its arguments name.
func (t *tool) inspect(fs *flags, fn func(context.Context, *relock.Lock) error) action {
	return t.inspectBy(fs, func(ctx context.Context, s *server, _ string) (*link, error) { return s.connect(ctx) }, fn)
}

// inspectBy is inspect with its own way to connect for the lock of that name.
func (t *tool) inspectBy(fs *flags, connect func(context.Context, *server, string) (*link, error), fn func(context.Context, *relock.Lock) error) action {
	var s server
	s.flags(fs, t.env)
	return func(ctx context.Context, words, more []string) int {
		if words = append(words, more...); len(words) != 1 {
			return t.fail(usageError{fmt.Errorf("want one NAME, not %s", cmp.Or(quotedAll(words), "none"))})
		}
		l, err := connect(ctx, &s, words[0])
		if err != nil {
			return t.failUnlessStopped(ctx, err)
		}
		defer l.close()
		// It holds nothing, so unanswered requests are not waited for: one in the pool of the redis client would keep Close
		// for as long as its read timeout.
		l.lost = true
		if err := fn(ctx, l.locks.NewLock(words[0])); err != nil {
			return t.fail(err)
		}
		return 0
	}
}
