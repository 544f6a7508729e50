package redistest

import (
	"slices"
	"strings"
)

// Command is one request that a client sent over a Link.
type Command struct {
	Args []string // as sent, the name first
	N    int      // its ordinal on the link, from 1
}

// Is reports whether the command's name is one of names, which are in lower case.
func (c Command) Is(names ...string) bool {
	return len(c.Args) > 0 && slices.Contains(names, strings.ToLower(c.Args[0]))
}

// Verdict is the fate of one command.
type Verdict struct {
	effect effect
	until  <-chan struct{}
}

type effect int

const (
	pass effect = iota
	swallowReply
	cutReply
	lose
	cutBefore
	hold
	duplicate
)

// The verdicts that need no channel. Replies to commands ahead on the same connection are delivered in every case.
var (
	// Pass changes nothing.
	Pass = Verdict{effect: pass}

	// SwallowReply executes the command, and withholds its reply and everything the server says after it on that
	// connection, which stays open. Commands behind it execute as well.
	SwallowReply = Verdict{effect: swallowReply}

	// CutReply executes the command and closes the connection instead of
	// delivering the reply. Commands behind it on that connection do not execute.
	CutReply = Verdict{effect: cutReply}

	// Lose keeps the command and everything behind it from the server, and the
	// connection, which stays open, from saying anything more.
	Lose = Verdict{effect: lose}

	// CutBefore closes the connection; neither the command nor anything behind it on that connection executes.
	CutBefore = Verdict{effect: cutBefore}
)

// Hold keeps the command and everything behind it on its connection back until ch is closed. They execute then even
// if the client has closed its end, as a retransmission would; only a Cut or a Hole meanwhile discards them.
func Hold(ch <-chan struct{}) Verdict { return Verdict{effect: hold, until: ch} }

// Duplicate passes the command now, and has a copy of it executed on a connection of its own once ch is closed,
// whatever the state of the link. Nobody sees the reply of the copy.
func Duplicate(ch <-chan struct{}) Verdict { return Verdict{effect: duplicate, until: ch} }
