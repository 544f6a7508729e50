package explore_test

import (
	"math"
	"slices"
	"strings"

	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/wire"
)

// seeReply counts the states that replies show.
func (w *world) seeReply(f *flight) {
	raw, many := f.reply.([]any)
	if !many {
		raw = []any{f.reply}
	}
	w.census.count(f.script)
	if f.script != "acquire" || f.err != nil {
		return
	}
	requests := f.requests()
	_, answers, err := wire.DecodeAcquire(raw, len(requests), math.MaxInt32, math.MaxInt64)
	if err != nil {
		w.violate("a reply of acquire cannot be read: %v", err)
	}
	for i, a := range answers {
		if a.Code == 1 && requests[i].place > 0 && !f.orphan {
			w.census.count("hand-overs by poll")
		}
		if a.Ghost != "" && !rig.Knows(f.from.client, a.Ghost) {
			w.census.count("ghosts named")
		}
		switch a.Code {
		case -4:
			w.census.count("ended nonces refused")
		case -2:
			w.census.count("late requests refused")
		case 3:
			w.census.count("busy answers")
		case -6:
			w.census.count("upgrades refused")
		}
	}
}

// sees counts what messages come to.
func (w *world) sees(e *ear, text string) {
	w.say("p%d hears %s", e.of.index, text)
	verb, rest, _ := strings.Cut(text, " ")
	nonce, _, _ := strings.Cut(rest, " ")
	w.census.count("message: " + verb)
	if verb == "grant" && len(strings.Fields(rest)) > 4 {
		w.census.count("grants that name a run")
	}
	if verb == "grant" && !rig.Knows(e.of.client, nonce) {
		w.census.count("grants for nobody")
	}
}

// sayState traces what a step has changed.
func (w *world) sayState(before, after stored, now int64) {
	text := func(s stored) string {
		var b strings.Builder
		var parts []string
		for owner, g := range s.live(now) {
			part := " " + g.mode + "(" + owner
			for _, x := range g.sessions {
				part += " " + x.nonce
			}
			parts = append(parts, w.plain(part+")", true))
		}
		slices.Sort(parts)
		b.WriteString(strings.Join(parts, ""))
		b.WriteString("; waiting:")
		for _, q := range s.queue {
			b.WriteString(" " + q.mode + " " + q.nonce)
		}
		return b.String()
	}
	if a, b := text(before), text(after); a != b {
		w.say("    held by%s", b)
	}
}
