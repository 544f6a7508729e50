//go:build unix

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// flagSet returns an empty set of flags that prints nothing by itself.
func flagSet() *flag.FlagSet {
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	return fs
}

// parse reads flags and, between them in any order, up to so many other arguments; the
// next one and all behind it are a command's, and so is what stands behind a "--". Where
// it is not ok the command ends with the status.
func (t *tool) parse(fs *flag.FlagSet, args []string, names int, help string) (words, command []string, status int, ok bool) {
	fs.BoolVar(&t.quiet, "q", t.quiet, "")
	fs.BoolVar(&t.json, "json", t.json, "")
	words, command, err := divide(fs, args, names)
	switch {
	case err == nil:
		return words, command, 0, true
	case errors.Is(err, flag.ErrHelp):
		t.say("%s", help)
		return nil, nil, 0, false
	}
	return nil, nil, t.fail(usageError{err}), false
}

func divide(fs *flag.FlagSet, args []string, names int) (words, command []string, err error) {
	for len(args) > 0 {
		arg := args[0]
		switch {
		case arg == "--":
			return words, args[1:], nil
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

// takesValue says whether the argument behind this flag is its value.
func takesValue(fs *flag.FlagSet, arg string) bool {
	name := strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-")
	f := fs.Lookup(name) // nil where it brings its value, or is unknown
	if f == nil {
		return false
	}
	b, is := f.Value.(interface{ IsBoolFlag() bool })
	return !is || !b.IsBoolFlag()
}

// A span is a length of time on the command line: 90s, 1m30s, or seconds without a unit.
type span time.Duration

func (s *span) String() string { return time.Duration(*s).String() }

func (s *span) Set(text string) error {
	d, err := time.ParseDuration(text)
	if n, bad := strconv.ParseFloat(text, 64); bad == nil {
		if n > 1e9 || n < -1e9 || n != n {
			return errors.New("too long")
		}
		d, err = time.Duration(n*float64(time.Second)), nil
	}
	if err != nil {
		return errors.New("want 90s, 1m30s, or seconds as in 90")
	}
	*s = span(d)
	return nil
}

// spanVar is fs.DurationVar, and takes seconds without a unit.
func spanVar(fs *flag.FlagSet, d *time.Duration, name string, value time.Duration) {
	*d = value
	fs.Var((*span)(d), name, "")
}

// A patience is how long to wait: for ever, unless it is set.
type patience struct {
	wait    time.Duration
	bounded bool
}

func (p *patience) flag(fs *flag.FlagSet, name string) {
	fs.Func(name, "", func(text string) error {
		var s span
		if err := s.Set(text); err != nil {
			return err
		}
		if s < 0 {
			return errors.New("less than nothing")
		}
		p.wait, p.bounded = time.Duration(s), true
		return nil
	})
}

// common moves flags that stand before the command behind it, where they are read.
func common(args []string, env []string) ([]string, error) {
	if len(args) == 0 || !strings.HasPrefix(args[0], "-") {
		return args, nil
	}
	fs := flagSet()
	new(server).flags(fs, env)
	fs.Bool("q", false, "")
	fs.Bool("json", false, "")
	words, rest, err := divide(fs, args, 0)
	if err != nil {
		return nil, err
	}
	if len(words) > 0 || len(rest) == 0 {
		return nil, fmt.Errorf("there is no command in %q; see relock help", args)
	}
	before := args[:len(args)-len(rest)]
	return append(append([]string{rest[0]}, before...), rest[1:]...), nil
}
