package transport

import (
	"errors"
	"fmt"

	"github.com/relock-go/relock/internal/script"
)

// A Usual is how a call can be made together with others, by a script that does for many
// what their own scripts do where nothing is unusual. Its reply has a value for each of
// them, in their order: what the call's own script would have replied, or 0 where it has
// done nothing for it. Then the call is made by itself.
//
// Its keys are the first of each call. It is told how many calls there are of those that
// go first; their parts; what the others have in common; and the parts of those.
type Usual struct {
	Script *script.Script
	First  bool  // it is of those that go first
	Common []int // the arguments of a call that those made together with it have as well
	Part   []int // those that are its own
}

const (
	// maxGroup is how many calls are made by one script, which keeps the server from all others.
	maxGroup = 32
	// apart is how many calls are made by themselves after some were made together in
	// vain: that has cost a round trip. Locks are contended, or the server refuses several keys.
	apart = 100
)

// A grouping finds the calls of a stream that are made together.
type grouping struct {
	// Guarded by stream.mu:

	first, second []*flight // of arrange
	apart         int       // so many calls are made by themselves
	cold          bool      // the server does not know the script

	full bool // its text is to be sent; of who writes
}

// arrange appends flights to a batch, with those that are made together side by side.
// They are calls of as many callers, so their order is free. It needs stream.mu.
func (g *grouping) arrange(batch, flights []*flight) []*flight {
	for _, f := range flights {
		switch u := f.cmd.usual; {
		case u == nil:
			batch = append(batch, f)
		case g.apart > 0:
			g.apart--
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
	if len(batch) > at {
		g.full, g.cold = g.cold, false
	}
	clear(g.first)
	clear(g.second)
	g.first, g.second = g.first[:0], g.second[:0]
	for ; at < len(batch); at += maxGroup {
		batch[at].group = min(len(batch)-at, maxGroup)
	}
	return batch
}

// alike says that two calls can be made together.
func alike(a, b bare) bool {
	if a.usual != b.usual {
		return false
	}
	for _, i := range a.usual.Common {
		if a.args[i] != b.args[i] {
			return false
		}
	}
	return true
}

// appendTo writes the command by which calls are made together.
func (g *grouping) appendTo(b []byte, flights []*flight) []byte {
	first, args := 0, 1
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
	b = appendHead(b, '*', 3+len(flights)+args)
	if g.full {
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

func appendArgs(b []byte, cmd bare, which []int) []byte {
	for _, i := range which {
		b = appendArg(b, cmd.args[i])
	}
	return b
}

// deliverGroup gives out the reply to calls that were made together, of which g is the
// first. An error of the script says that none of them was run: it lets nothing fail that
// it has begun. One of a proxy may leave that open. It appends to others who is to be
// woken beside f's caller, and needs s.mu.
func (s *stream) deliverGroup(g *flight, r reply, f *flight, others []*flight) []*flight {
	n := g.group
	values, _ := r.val.([]any)
	var lost error // why nobody knows what became of them
	switch {
	case unknownScript(r.err):
		s.group.cold = true
	case mayHaveRun(r.err):
		lost, s.group.apart = r.err, apart
	case r.err != nil:
		s.group.apart = apart
	case len(values) != n:
		lost = fmt.Errorf("%w: %d values for %d calls", errOrder, len(values), n)
	}
	for i := range n {
		if i > 0 {
			g = s.flying.pop()
		}
		g.group = 0
		own, again := reply{err: lost}, r.err != nil && lost == nil
		if !again && lost == nil {
			own.val = values[i]
			if again = own.val == int64(0); again {
				s.group.apart = apart
			}
		}
		if g.left {
			continue
		}
		g.again = again
		s.finish(g, own)
		if g != f {
			others = append(others, g)
		}
	}
	if errors.Is(lost, errOrder) {
		s.fail(lost)
	}
	return others
}
