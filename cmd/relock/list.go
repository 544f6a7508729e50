//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
	"unicode"
	"unsafe"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
)

const lsAbout = `Lists the locks whose names begin with PREFIX: held, waited for, resting, or with waiters on
a condition. The list is sorted by name. ls scans all keys of the servers, so the user needs
+scan in addition to the permissions for locks.
`

const lsAfter = `Exit status: 0; 64 wrong usage; 69 a lock or a server could not be read: ls still lists
the others.
`

func (t *tool) ls(fs *flags) action {
	return t.list(fs, func(ctx context.Context, l *link, prefix string) error {
		locks, _, err := lookAt(ctx, l, prefix)
		slices.SortFunc(locks, func(a, b relock.Info) int { return cmp.Compare(a.Name, b.Name) })
		if t.json {
			for _, info := range locks {
				t.tell(t.out, lockFormOf(info))
			}
			return err
		}
		text := &strings.Builder{}
		switch onScreen := isTerminal(t.out); {
		case onScreen && len(locks) == 0 && err == nil:
			text.WriteString("no lock is in use\n") // for a person; a program reads no lines
		default:
			table(text, locks, onScreen)
		}
		t.say("%s", text)
		return err
	})
}

// list returns an action that calls fn with a link and the prefix that its arguments name.
func (t *tool) list(fs *flags, fn func(context.Context, *link, string) error) action {
	var s server
	s.flags(fs, t.env)
	return func(ctx context.Context, words, more []string) int {
		if words = append(words, more...); len(words) > 1 {
			return t.fail(usageError{fmt.Errorf("want at most one PREFIX, not %q", words)})
		}
		l, err := s.connect(ctx)
		if err != nil {
			return t.failUnlessStopped(ctx, err)
		}
		defer l.close()
		if err := fn(ctx, l, strings.Join(words, "")); err != nil {
			return t.fail(err)
		}
		return 0
	}
}

// lookAt returns the locks that it has found, even together with an error. unread: the error is not of single
// locks, but of a server or Redis.
func lookAt(ctx context.Context, l *link, prefix string) (locks []relock.Info, unread bool, err error) {
	for info, bad := range l.locks.Locks(ctx, literal.Replace(prefix)+"*") {
		switch {
		case bad != nil:
			err, unread = errors.Join(err, bad), unread || info.Name == "" || errors.Is(bad, relock.ErrUnavailable) || redis.IsPermissionError(bad)
		default:
			locks = append(locks, info)
		}
	}
	return locks, unread, err
}

// literal escapes the special characters of a pattern.
var literal = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// widest is how much of a name a row on a screen has: one long name would make every row wrap.
const widest = 64

// table prints a line for each lock.
func table(out *strings.Builder, locks []relock.Info, onScreen bool) {
	if len(locks) == 0 {
		return
	}
	lines := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(lines, "NAME\tKIND\tHELD BY\tFOR\tLEASE\tWAITING")
	for _, info := range locks {
		name := shown(info.Name)
		if all := []rune(name); onScreen && len(all) > widest {
			name = string(all[:widest-1]) + "…"
		}
		_, _ = fmt.Fprintf(lines, "%s\t%s\t%s\t%d\n", name, info.Kind, holding(info), info.Waiters)
	}
	_ = lines.Flush() // a Builder never fails
}

// holding describes the first holder, and how many others there are.
func holding(info relock.Info) string {
	if len(info.Holders) == 0 && info.Resting > 0 {
		return fmt.Sprintf("nobody\t-\t%v", info.Resting.Round(time.Second))
	}
	if len(info.Holders) == 0 && info.CondWaiters > 0 {
		return fmt.Sprintf("nobody (%d waiting on conditions)\t-\t-", info.CondWaiters)
	}
	if len(info.Holders) == 0 {
		return "-\t-\t-"
	}
	h := info.Holders[0]
	who := shown(cmp.Or(h.Label, h.Owner))
	if h.Detached {
		who = "a ticket"
	}
	if h.Sticky {
		who += " (sticky)"
	}
	if more := len(info.Holders) - 1; more > 0 {
		who += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("%s\t%v\t%v", who, h.Held.Round(time.Second), h.TTL.Round(time.Second))
}

// shown quotes a text that has escape codes for a terminal, or that could be read as two.
func shown(text string) string {
	// Nobody sees these, though Go calls them printable.
	blank := func(r rune) bool {
		return r == '\u2800' || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
	}
	if strings.ContainsFunc(text, blank) {
		return strconv.QuoteToASCII(text)
	}
	if quoted := strconv.Quote(text); quoted != `"`+text+`"` || text == "" || strings.Contains(text, " ") {
		return quoted
	}
	return text
}

const topAbout = `Refreshes until Ctrl-C. After each look, top pauses for at least nineteen times as long as
the look took, so it uses at most a twentieth of the servers' time.
`

const topAfter = `Exit status: 0; 64 wrong usage; 69 Redis cannot be reached or refuses the request.
`

// A topForm is the JSON of one look.
type topForm struct {
	At     time.Time  `json:"at"`
	TookMS int64      `json:"took_ms"`
	Locks  []lockForm `json:"locks"`
}

func (t *tool) top(fs *flags) action {
	var every time.Duration
	positiveVar(fs, &every, "every", time.Second, "D: how often to refresh (default 1s)")
	var looks int
	fs.Var(bounded{&looks, 1, math.MaxInt}, "looks", "N: stop after N looks (default: run until Ctrl-C)")
	looksOn := t.list(fs, func(ctx context.Context, l *link, prefix string) error {
		for n := 1; ; n++ {
			began := time.Now()
			locks, unread, err := lookAt(ctx, l, prefix)
			took := time.Since(began)
			switch {
			case ctx.Err() != nil:
			case unread && len(locks) == 0:
				return err
			default:
				t.draw(began, took, locks)
			}
			if err != nil && ctx.Err() == nil {
				t.note("%s", trimName(err)) // of one lock, or one server: ls says the same
			}
			if n == looks || t.unsaid != nil {
				return nil //nolint:nilerr // a failed write is reported when the command ends
			}
			rest := time.NewTimer(restAfter(took, every))
			select {
			case <-rest.C:
			case <-ctx.Done():
				rest.Stop()
				return nil
			}
		}
	})
	return func(ctx context.Context, words, more []string) int {
		ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		defer stop()
		signal.Reset(syscall.SIGPIPE) // top must end when its reader has gone, as in "relock top | head"
		return looksOn(ctx, words, more)
	}
}

// restAfter returns how long top rests after a look.
func restAfter(took, every time.Duration) time.Duration { return max(every-took, 19*took) }

// draw prints one look. On a terminal it replaces the one before.
func (t *tool) draw(at time.Time, took time.Duration, locks []relock.Info) {
	slices.SortFunc(locks, func(a, b relock.Info) int {
		return cmp.Or(cmp.Compare(b.Waiters, a.Waiters), cmp.Compare(longest(b), longest(a)), cmp.Compare(a.Name, b.Name))
	})
	if t.json {
		form := topForm{At: at, TookMS: ms(took), Locks: []lockForm{}}
		for _, info := range locks {
			form.Locks = append(form.Locks, lockFormOf(info))
		}
		t.tell(t.out, form)
		return
	}
	held, waiting := 0, 0
	for _, info := range locks {
		waiting += info.Waiters
		if len(info.Holders) > 0 {
			held++
		}
	}
	all, text := len(locks), &strings.Builder{}
	rows, live := rowsOf(t.out)
	if live {
		locks = locks[:min(len(locks), max(0, rows-4))]
		text.WriteString("\x1b[H\x1b[2J")
	}
	fmt.Fprintf(text, "%s  %d %s, %d held, %d waiting; read in %v\n\n",
		at.Format(time.TimeOnly), all, plural(all, "lock"), held, waiting, took.Round(time.Millisecond))
	table(text, locks, live)
	t.say("%s", text)
}

// plural returns the word for n things.
func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

func longest(info relock.Info) (held time.Duration) {
	for _, h := range info.Holders {
		held = max(held, h.Held)
	}
	return held
}

// rowsOf returns how many lines a terminal has.
func rowsOf(out io.Writer) (rows int, is bool) {
	f, ok := out.(*os.File)
	if !ok || !isTerminal(out) {
		return 0, false
	}
	var size struct{ rows, columns, x, y uint16 }
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size)))
	if errno != 0 || size.rows == 0 {
		return 24, true
	}
	return int(size.rows), true
}
