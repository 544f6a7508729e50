//go:build unix

package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// flags is a flag.FlagSet that keeps the order of declaration, and prints nothing by itself. A flag's usage
// is its help text, with "VALUE: " before it if the flag takes a value. A line that begins with two spaces is
// not wrapped.
type flags struct {
	*flag.FlagSet
	order []string
}

func newFlags() *flags {
	fs := &flags{FlagSet: flag.NewFlagSet("", flag.ContinueOnError)}
	fs.SetOutput(io.Discard)
	return fs
}

func (fs *flags) Var(value flag.Value, name, usage string) {
	fs.order = append(fs.order, name)
	fs.FlagSet.Var(value, name, usage)
}

func (fs *flags) StringVar(p *string, name, value, usage string) {
	fs.order = append(fs.order, name)
	fs.FlagSet.StringVar(p, name, value, usage)
}

func (fs *flags) BoolVar(p *bool, name string, value bool, usage string) {
	fs.order = append(fs.order, name)
	fs.FlagSet.BoolVar(p, name, value, usage)
}

func (fs *flags) Func(name, usage string, fn func(string) error) {
	fs.order = append(fs.order, name)
	fs.FlagSet.Func(name, usage, fn)
}

// A flagRow is the help for one flag.
type flagRow struct {
	name  string
	value string // the value's name in the help; "": takes none
	text  string
}

func (fs *flags) rows() (rows []flagRow) {
	for _, name := range fs.order {
		rows = append(rows, fs.row(name))
	}
	return rows
}

// row returns the help for a flag that exists.
func (fs *flags) row(name string) flagRow {
	row := flagRow{name: name, text: fs.Lookup(name).Usage}
	if takesValue(fs, name) {
		row.value, row.text, _ = strings.Cut(row.text, ": ")
	}
	return row
}

// head returns the flag as it is typed.
func (f flagRow) head() string { return strings.TrimSpace("-" + f.name + " " + f.value) }

// wrapped splits the text into lines of at most that width, except for lines that begin with two spaces.
func wrapped(text string, width int) (lines []string) {
	for whole := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(whole, "  ") {
			lines = append(lines, whole)
			continue
		}
		line := ""
		for word := range strings.FieldsSeq(whole) {
			if line != "" && len(line)+1+len(word) > width {
				lines, line = append(lines, line), ""
			}
			line = strings.TrimSpace(line + " " + word)
		}
		lines = append(lines, line)
	}
	return lines
}

// flags declares the flags of every verb.
func (t *tool) flags(fs *flags) {
	fs.BoolVar(&t.quiet, "q", t.quiet, "suppress notes, the lines that hold, unlock and wait print, what doctor does not call wrong, and errors that the exit status shows. An outage and an unconfirmed release are still reported")
	fs.BoolVar(&t.json, "json", t.json, "print one JSON object per line; docs/operations.md lists the commands that do")
}

// divide reads flags and up to names other arguments, in any order. The next argument and everything after it
// belong to a command. After a "--" there are no flags: the missing arguments come first and then the
// command, with an optional second "--" before it.
func divide(fs *flags, args []string, names int) (words, command []string, err error) {
	for len(args) > 0 {
		arg := args[0]
		switch {
		case arg == "--":
			missing := min(names-len(words), len(args)-1)
			words, command = append(words, args[1:1+missing]...), args[1+missing:]
			if missing > 0 && len(command) > 0 && command[0] == "--" {
				command = command[1:]
			}
			return words, command, nil
		case len(arg) > 1 && arg[0] == '-':
			n := 1
			if takesValue(fs, arg) {
				n = min(2, len(args))
			}
			if err := fs.Parse(args[:n]); err != nil {
				return nil, nil, err
			}
			args = args[n:]
		case len(words) == names:
			return words, args, nil
		default:
			words, args = append(words, arg), args[1:]
		}
	}
	return words, nil, nil
}

// wantsJSON looks for -json among arguments that are wrong, up to a "--" or to a command, whose flags are its own.
func wantsJSON(args []string) (wanted bool) {
	fs, names, in := commonFlags(new(server), nil), 0, false
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "--":
			return wanted
		case len(arg) > 1 && arg[0] == '-':
			if name, value, _ := strings.Cut(undashed(arg), "="); name == "json" {
				on, err := strconv.ParseBool(cmp.Or(value, "true"))
				wanted = on && err == nil
			}
			if takesValue(fs, arg) {
				i++
			}
		case !in:
			in, names = true, math.MaxInt // of a verb that is not known
			if v, known := verbOf(arg); known {
				fs, _ = v.flags(&tool{})
				names = v.names()
			}
		case names == 0:
			return wanted
		default:
			names--
		}
	}
	return wanted
}

// takesValue reports whether the argument after this flag is its value.
func takesValue(fs *flags, arg string) bool {
	f := fs.Lookup(undashed(arg)) // nil if arg has its value after "=", or is unknown
	if f == nil {
		return false
	}
	b, is := f.Value.(interface{ IsBoolFlag() bool })
	return !is || !b.IsBoolFlag()
}

func undashed(arg string) string { return strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-") }

// A span is a length of time on the command line: 90s, 1m30s, or seconds without a unit.
type span time.Duration

func (s *span) String() string { return time.Duration(*s).String() }

func (s *span) Set(text string) error {
	d, err := time.ParseDuration(text)
	if n, bad := strconv.ParseFloat(text, 64); bad == nil {
		if n > 1e9 || n < -1e9 || n != n {
			return errors.New("must be at most 1e9 seconds")
		}
		d, err = time.Duration(math.Round(n*float64(time.Second))), nil
	}
	if err != nil {
		return errors.New("must be a duration such as 90s or 1m30s, or seconds such as 90")
	}
	*s = span(d)
	return nil
}

// spanVar is fs.DurationVar, but also accepts seconds without a unit.
func spanVar(fs *flags, d *time.Duration, name string, value time.Duration, usage string) {
	*d = value
	fs.Var((*span)(d), name, usage)
}

// A positive is a span that must not be zero. A script may have computed it.
type positive span

func (p *positive) String() string { return (*span)(p).String() }

func (p *positive) Set(text string) error {
	if err := (*span)(p).Set(text); err != nil || *p > 0 {
		return err
	}
	return errors.New("must be more than zero")
}

// positiveVar is spanVar, but refuses zero.
func positiveVar(fs *flags, d *time.Duration, name string, value time.Duration, usage string) {
	*d = value
	fs.Var((*positive)(d), name, usage)
}

// textVar is fs.StringVar, but refuses an empty value, which an unset variable in a script would give.
func textVar(fs *flags, p *string, name, usage string) {
	fs.Func(name, usage, func(text string) error {
		if *p = text; text == "" {
			return errors.New("must not be empty")
		}
		return nil
	})
}

// A bounded is a number between two bounds.
type bounded struct {
	n           *int
	least, most int
}

func (n bounded) String() string {
	if n.n == nil {
		return "" // the flag package calls this on a zero value
	}
	return strconv.Itoa(*n.n)
}

func (n bounded) Set(text string) (err error) {
	*n.n, err = strconv.Atoi(text)
	if err != nil || *n.n < n.least || *n.n > n.most {
		return fmt.Errorf("must be a number from %d to %d", n.least, n.most)
	}
	return nil
}

// A patience is how long to wait: for ever, unless it is set.
type patience struct {
	wait    time.Duration
	bounded bool
}

func (p *patience) flag(fs *flags, name, usage string) {
	fs.Func(name, usage, func(text string) error {
		var s span
		if err := s.Set(text); err != nil {
			return err
		}
		if s < 0 {
			return errors.New("must not be negative")
		}
		p.wait, p.bounded = time.Duration(s), true
		return nil
	})
}

// over reports whether nothing is left of it.
func (p *patience) over(began time.Time) bool { return p.bounded && time.Since(began) >= p.wait }

// next bounds the next request for a first answer of Redis.
func (p *patience) next(began time.Time) time.Duration {
	if !p.bounded {
		return reachable
	}
	return min(p.left(began), reachable)
}

// left returns what is left of it, or hasty if that is more.
func (p *patience) left(began time.Time) time.Duration { return max(p.wait-time.Since(began), hasty) }

// common moves flags from before the verb to after it, where they are read.
func common(args []string, env []string) ([]string, error) {
	if len(args) == 0 || !strings.HasPrefix(args[0], "-") {
		return args, nil
	}
	fs := commonFlags(new(server), env)
	words, rest, err := divide(fs, args, 0)
	if errors.Is(err, flag.ErrHelp) {
		return []string{"help"}, nil
	}
	if err != nil {
		return nil, err
	}
	if len(words) > 0 || len(rest) == 0 {
		return nil, fmt.Errorf("no command in %q; see relock help", args)
	}
	before := args[:len(args)-len(rest)]
	return append(append([]string{rest[0]}, before...), rest[1:]...), nil
}

// commonFlags are the flags that may stand before the verb.
func commonFlags(s *server, env []string) *flags {
	fs := newFlags()
	s.flags(fs, env)
	new(tool).flags(fs)
	return fs
}
