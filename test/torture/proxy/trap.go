package proxy

import (
	"bytes"
	"slices"
	"time"
)

// A Fate is what happens to a request that a Trap catches.
type Fate int

// What can happen to a request.
const (
	Swallow  Fate = iota + 1 // it is executed, and its connection says nothing more
	CutReply                 // it is executed, and its connection closes instead of answering
	Delay                    // it arrives For later, even if its client has gone
	Late                     // it is executed For later, on another connection, and nobody hears the reply
)

// A Trap waits for requests of a script.
type Trap struct {
	Fate Fate
	SHA  string // of the script; "": of any
	Skip int    // so many requests pass before it snaps
	N    int    // how many it catches
	For  time.Duration

	caught int
}

// Arm sets a trap; disarm tells how many requests it has caught.
func (l *Link) Arm(t Trap) (disarm func() int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	armed := &t
	l.armed = append(l.armed, armed)
	return func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.armed = slices.DeleteFunc(l.armed, func(other *Trap) bool { return other == armed })
		return armed.caught
	}
}

// judge returns the trap that catches a request, or nil.
func (l *Link) judge(chunk []byte) *Trap {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.armed) == 0 || !bytes.Contains(chunk, []byte("evalsha")) && !bytes.Contains(chunk, []byte("EVALSHA")) {
		return nil
	}
	for _, t := range l.armed {
		if t.caught >= t.N || !bytes.Contains(chunk, []byte(t.SHA)) {
			continue
		}
		if t.Skip > 0 {
			t.Skip--
			continue
		}
		t.caught++
		return t
	}
	return nil
}
