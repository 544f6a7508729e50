//go:build unix

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
)

// A verb is one of relock's commands. Their execution, help, man page and completion are all made from these
// values, and from the flags that begin declares.
type verb struct {
	name  string
	args  string // as in the help
	brief string // what it does, after its name
	about string // the help before the flags
	after string // the help after the flags
	begin func(*tool, *flags) action
}

// An action executes a verb once its flags have been read. more has the arguments after the named ones, or
// after a "--".
type action func(ctx context.Context, words, more []string) (status int)

// verbs returns all verbs, in the order of the help.
func verbs() []verb {
	return []verb{
		{"demo", "[flags]", "show processes that contend, crash, pause and share; needs no Redis", demoAbout, "", (*tool).demo},
		{"doctor", "[flags]", "check whether this Redis is fit for locks", doctorAbout, doctorAfter, (*tool).doctor},
		{"run", "[flags] NAME command ...", "run a command while holding the lock NAME", "", runAfter, (*tool).run},
		{"hold", "[flags] NAME", "hold the lock without a command", holdAbout, holdAfter, (*tool).hold},
		{"wait", "[flags] NAME", "wait until the lock is free, without taking it", waitAbout, waitAfter, (*tool).waitFree},
		{"ls", "[flags] [PREFIX]", "list the locks in use", lsAbout, lsAfter, (*tool).ls},
		{"top", "[flags] [PREFIX]", "list the locks in use, refreshed, longest queues first", topAbout, topAfter, (*tool).top},
		{"info", "[flags] NAME", "show who holds the lock, its kind, and how many wait", infoAbout, "", (*tool).info},
		{"waiters", "[flags] NAME", "list the waiters for the lock, in order, with their modes", "", "", (*tool).waiters},
		{"unlock", "-force [flags] NAME", "take the lock from all its holders, or from one", unlockAbout, "", (*tool).unlock},
		{"serve", "[flags]", "serve a web page with all locks, their holders and waiters", "", serveAfter, (*tool).serve},
		{"completion", strings.Join(shells, "|"), "print a script that completes relock's arguments in a shell", completionAbout, "", (*tool).completion},
		{"man", "", "print this help as a man page", manAbout, "", (*tool).man},
		{"version", "", "print the version of this program", "", "", (*tool).version},
		{"help", "[COMMAND]", "print this list, or the help of one command", "", "", (*tool).help},
	}
}

func verbOf(name string) (v verb, known bool) {
	all := verbs()
	i := slices.IndexFunc(all, func(v verb) bool { return v.name == name })
	if i < 0 {
		return v, false
	}
	return all[i], true
}

// do reads the verb's arguments and executes it.
func (v verb) do(ctx context.Context, t *tool, args []string) (status int) {
	fs, act := v.flags(t)
	words, more, err := divide(fs, args, v.names())
	switch {
	case errors.Is(err, flag.ErrHelp):
		t.say("%s", v.help(t))
		return 0
	case err != nil:
		t.json = t.json || wantsJSON(append([]string{v.name}, args...))
		return t.fail(usageError{err})
	}
	return act(ctx, words, more)
}

// flags returns the verb's own flags together with those of every verb.
func (v verb) flags(t *tool) (*flags, action) {
	fs := newFlags()
	act := v.begin(t, fs)
	t.flags(fs)
	return fs, act
}

// aCommand is the name of an argument that is a command with its own arguments.
const aCommand = "command"

// places returns the names of the verb's arguments, without flags, as the help shows them.
func (v verb) places() (places []string) {
	for place := range strings.FieldsSeq(v.args) {
		if place = strings.Trim(place, "[]"); place != "flags" && place != "..." && place[0] != '-' {
			places = append(places, place)
		}
	}
	return places
}

// names returns how many arguments stand before a command.
func (v verb) names() int {
	places := v.places()
	if i := slices.Index(places, aCommand); i >= 0 {
		return i
	}
	return len(places)
}

// line returns the verb with its arguments.
func (v verb) line() string { return strings.TrimSpace(v.name + " " + v.args) }

// usage returns the list of all verbs.
func usage() string {
	b := &strings.Builder{}
	b.WriteString("relock: " + purpose + "\n\n")
	for _, v := range verbs() {
		fmt.Fprintf(b, "  relock %-33s %s\n", v.line(), v.brief)
	}
	b.WriteString("\n\"relock help COMMAND\" describes a command.\n" + whereRedisIs + "\n")
	return b.String()
}

const (
	purpose      = "a distributed lock on Redis"
	whereRedisIs = "The URL of Redis comes from -redis, else from REDIS_URL, else it is " + defaultURL + "."
)

// help returns the text of -h.
func (v verb) help(t *tool) string {
	b := &strings.Builder{}
	fmt.Fprintf(b, "relock %s: %s\n", v.line(), v.brief)
	if v.about != "" {
		b.WriteString("\n" + v.about)
	}
	b.WriteString("\n")
	fs, _ := v.flags(t)
	for _, f := range fs.rows() {
		lines := wrapped(f.text, helpWidth-helpColumn)
		fmt.Fprintf(b, "  %-13s %s\n", f.head(), lines[0])
		for _, line := range lines[1:] {
			fmt.Fprintf(b, "%*s%s\n", helpColumn, "", line)
		}
	}
	if v.after != "" {
		b.WriteString("\n" + v.after)
	}
	return b.String()
}

const (
	helpColumn = 16
	helpWidth  = 92
)
