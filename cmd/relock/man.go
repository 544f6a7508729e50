//go:build unix

package main

import (
	"context"
	"slices"
	"strings"
)

const (
	manDate   = "2026-11-26" // date of the page's newest part
	roffWidth = 64           // before dashes are escaped; longer lines are hard to compare
)

const manAbout = `To read the page, and to install it:

  relock man | man -l -
  relock man >/usr/local/share/man/man1/relock.1
`

// An exit is one of relock's own exit statuses and its meaning.
type exit struct {
	status string
	says   string
}

var exits = []exit{
	{"1", "a check of the demo failed, or the doctor found something wrong"},
	{"64", "usage: the arguments are wrong"},
	{"69", "Redis cannot be reached or refuses the request, or NAME is in use as another kind of lock; run did not start its command"},
	{"74", "output could not be written, for example to a full disk; everything else was done"},
	{"75", "the lock was not acquired within -wait; the command was not started; try again later"},
	{"76", "the lock was lost; relock stopped the command, unless it had ended"},
	{"126", "the command was found, but could not be started"},
	{"127", "the command was not found"},
}

// variables are the environment variables that relock reads, and those that it sets for a command.
var variables = [][2]string{
	{"REDIS_URL", "the URL of Redis, unless -redis gives one"},
	{"RELOCK_PREFIX", "the prefix of every key in Redis, unless -prefix gives one"},
	{"NO_COLOR", "if set, output has no colors"},
	{"RELOCK_NAME, RELOCK_TOKEN, RELOCK_OWNER", "run sets them for its command"},
	{"RELOCK_RUNS", "run also sets this list of outer runs: an inner relock run that would wait for one of them forever is refused"},
}

func (t *tool) man(*flags) action {
	return t.takesNothing("man", func(context.Context) int {
		t.say("%s", manual())
		return 0
	})
}

// manual returns the man page, in macros that every man knows. It does not depend on the machine.
func manual() string {
	p := &page{}
	none := &tool{}
	p.line(".TH RELOCK 1 " + manDate + " relock")
	p.line(".SH NAME")
	p.line(`relock \- ` + escaped(purpose))
	p.line(".SH SYNOPSIS")
	p.line(".nf")
	for _, v := range verbs() {
		p.line(`\fBrelock ` + escaped(v.name) + `\fR ` + escaped(v.args))
	}
	p.line(".fi")
	p.line(".SH DESCRIPTION")
	p.paragraphs(whereRedisIs + ` A name is one kind of lock at a time: plain, unless -fair, -n, -read or -write select another.
Put a password in REDIS_URL: other users of the machine can see arguments.

Flags can be in any order, before or after NAME. -redis, -prefix, -cert, -key, -cacert, -sharded, -q and -json can also come right after relock. A -- is needed only before a NAME or a command that begins with a dash. D is a duration: 90s, 1m30s, or seconds without a unit.`)
	p.line(".SH COMMANDS")
	everywhere := commonFlags(new(server), nil)
	for _, v := range verbs() {
		p.verb(none, v, everywhere)
	}
	p.line(".SH COMMON FLAGS")
	p.line("Every command takes -q and -json. Commands that ask Redis take the other flags too, except that demo takes only -redis.")
	for _, f := range everywhere.rows() {
		p.flag(f)
	}
	p.line(".SH EXIT STATUS")
	p.text("relock run exits with the status of its command, or with 128+n if signal n ended it. relock's own statuses are:")
	for _, e := range exits {
		p.item(e.status, e.says)
	}
	p.line(".SH ENVIRONMENT")
	for _, v := range variables {
		p.item(v[0], v[1])
	}
	return p.String()
}

// A page is a man page that is being written.
type page struct{ strings.Builder }

func (p *page) line(text string) { p.WriteString(text + "\n") }

func (p *page) item(head, text string) {
	p.line(".TP")
	p.line(`\fB` + escaped(head) + `\fR`)
	p.text(text)
}

// verb writes a verb's section. It leaves out the flags that have a section of their own.
func (p *page) verb(t *tool, v verb, everywhere *flags) {
	p.line(".SS relock " + escaped(v.line()))
	p.line(escaped(strings.ToUpper(v.brief[:1]) + v.brief[1:] + "."))
	if v.about != "" {
		p.line(".PP")
		p.paragraphs(v.about)
	}
	fs, _ := v.flags(t)
	for _, f := range fs.rows() {
		if !slices.Contains(everywhere.rows(), f) {
			p.flag(f)
		}
	}
	if v.after != "" {
		p.line(".PP")
		p.paragraphs(v.after)
	}
}

func (p *page) flag(f flagRow) {
	head := `\fB` + escaped("-"+f.name) + `\fR`
	if f.value != "" {
		head += ` \fI` + escaped(f.value) + `\fR`
	}
	p.line(".TP")
	p.line(head)
	p.text(f.text)
}

// paragraphs writes paragraphs with an empty line between them.
func (p *page) paragraphs(text string) {
	for i, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			p.line(".PP")
		}
		p.text(paragraph)
	}
}

// text writes lines that man fills, except for lines that begin with two spaces.
func (p *page) text(text string) {
	as := false
	for _, line := range wrapped(text, roffWidth) {
		if is := strings.HasPrefix(line, "  "); is != as {
			p.line(map[bool]string{true: ".nf", false: ".fi"}[is])
			as = is
		}
		p.line(escaped(strings.TrimSpace(line)))
	}
	if as {
		p.line(".fi")
	}
}

// escaped escapes text for roff, so that it has no requests or escapes, and dashes can be copied to a shell.
func escaped(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(text)
	if strings.HasPrefix(text, ".") {
		return `\&` + text
	}
	return text
}
