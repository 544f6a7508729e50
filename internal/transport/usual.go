package transport

import (
	"errors"
	"fmt"
	"slices"

	"github.com/relock-go/relock/internal/script"
)

// A Usual says how to group a call with others. One script then does for all of them what their own scripts do in the
// usual case. Its reply has one value for each call, in order: the reply of the call's own script, or 0 if it did
// nothing for that call. Such a call is then sent alone.
//
// Calls with First come before the others. The script's keys are the first key of each call. Its arguments are: the
// number of calls with First; their Parts; the Common arguments of the others; the others' Parts.
type Usual struct {
	Script *script.Script
	First  bool
	Common []int // indexes of the arguments that must be equal in all calls without First
	Part   []int // indexes of the call's own arguments
}

const (
	// maxGroup bounds the calls of one group, because Redis runs nothing else during a script.
	maxGroup = 32
	// soloCalls is how many calls are sent alone after a group did nothing for one of its calls. The group cost a round
	// trip, and the next would too: locks are contended, or the server refuses scripts with several keys.
	soloCalls = 100
)

// A grouping decides which calls of a stream are sent as a group.
type grouping struct {
	// Guarded by stream.mu:

	first, second []*flight // scratch space of arrange
	solo          int       // how many calls must still be sent alone
	cold          bool      // the server does not know the script

	sendText bool // the groups that were arranged last are sent with the script's text
}

// arrange appends flights to a batch so that the flights of a group are adjacent. It may change their order, because
// they belong to different callers. It needs stream.mu.
func (g *grouping) arrange(batch, flights []*flight) []*flight {
	for _, f := range flights {
		switch u := f.cmd.usual; {
		case u == nil:
			batch = append(batch, f)
		case g.solo > 0:
			g.solo--
			batch = append(batch, f)
		case u.First:
			g.first = append(g.first, f)
		case len(g.second) == 0 || alike(f.cmd, g.second[0].cmd):
			g.second = append(g.second, f)
		default:
			batch = append(batch, f)
		}
	}
	at := len(batch)
	batch = append(append(batch, g.first...), g.second...)
	if len(batch) > at+1 {
		g.sendText, g.cold = g.cold, false
	}
	clear(g.first)
	clear(g.second)
	g.first, g.second = g.first[:0], g.second[:0]
	for ; at < len(batch); at += maxGroup {
		batch[at].group = min(len(batch)-at, maxGroup)
	}
	return batch
}

// alike reports whether two calls without First can be in one group. They have the same Usual.
func alike(a, b rawCmd) bool {
	return !slices.ContainsFunc(a.usual.Common, func(i int) bool { return a.args[i] != b.args[i] })
}

// appendTo appends the encoded command of a group: see Usual. arrange has put the calls with First in front.
func (g *grouping) appendTo(b []byte, flights []*flight) []byte {
	first, args := 0, 1 // the calls with First; that number is an argument itself
	for _, f := range flights {
		args += len(f.cmd.usual.Part)
		if f.cmd.usual.First {
			first++
		}
	}
	last := flights[len(flights)-1].cmd.usual
	if !last.First {
		args += len(last.Common)
	}
	b = appendHead(b, '*', 3+len(flights)+args) // 3: the command, the script, the number of keys
	if g.sendText {
		b = appendText(appendText(b, eval), last.Script.Source)
	} else {
		b = appendText(appendText(b, evalsha), last.Script.SHA)
	}
	b = appendNumber(b, int64(len(flights)))
	for _, f := range flights {
		b = appendText(b, f.cmd.keys[0])
	}
	b = appendNumber(b, int64(first))
	for i, f := range flights {
		if i == first {
			b = appendArgs(b, f.cmd, last.Common)
		}
		b = appendArgs(b, f.cmd, f.cmd.usual.Part)
	}
	return b
}

func appendArgs(b []byte, cmd rawCmd, which []int) []byte {
	for _, i := range which {
		b = appendArg(b, cmd.args[i])
	}
	return b
}

// distribute gives the reply of a group to its flights. An error of the script means that it did nothing for any call,
// because it never fails after its first write. After a proxy's error, what it did is unknown. distribute returns an
// error if the connection cannot be read any more. It needs stream.mu.
func (g *grouping) distribute(flights []*flight, r reply) error {
	values, _ := r.val.([]any)
	var lost error // why it is unknown what the script did
	switch {
	case hasCode(r.err, "NOSCRIPT"):
		g.cold = true
	case mayHaveRun(r.err):
		lost, g.solo = r.err, soloCalls
	case r.err != nil:
		g.solo = soloCalls
	case len(values) != len(flights):
		lost = fmt.Errorf("%w: %d values for %d calls", errOrder, len(values), len(flights))
	}
	for i, f := range flights {
		own, again := reply{err: lost}, r.err != nil && lost == nil
		if !again && lost == nil {
			own.val = values[i]
			if again = own.val == int64(0); again {
				g.solo = soloCalls
			}
		}
		f.again = again
		f.finish(own)
	}
	if errors.Is(lost, errOrder) {
		return lost
	}
	return nil
}
