//go:build unix

package main

import (
	"fmt"
	"time"
)

// A printer writes the timeline.
type printer struct {
	say   func(format string, args ...any)
	color bool
	began time.Time
}

const (
	bold   = "1"
	faint  = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)

func (p *printer) paint(style, s string) string {
	if !p.color {
		return s
	}
	return "\x1b[" + style + "m" + s + "\x1b[0m"
}

func (p *printer) title(s string) { p.say("\n%s\n", p.paint(bold, s)) }

// line prints one event, with the time at which its process saw it.
func (p *printer) line(at time.Time, who, what string) {
	// Wall clocks, because the event's time comes from another process and has no monotonic reading that we
	// could use.
	elapsed := fmt.Sprintf("%7.2fs", at.Round(0).Sub(p.began.Round(0)).Seconds())
	p.say("%s  %-18s %s\n", p.paint(faint, elapsed), who, what)
}

func (p *printer) check(c check) {
	mark := p.paint(green, "✓")
	if !c.ok {
		mark = p.paint(red, "✗")
	}
	p.say("  %s %s: %s\n", mark, c.claim, c.saw)
}
