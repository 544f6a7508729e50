package relock

import (
	"context"
	"time"
)

// Hooks are called as locks change hands, each on the goroutine that noticed,
// outside of every mutex of the library: a caller's, the watchdog's, the inbox'.
// A hook that blocks delays that goroutine, and must not call Close. Any may be nil.
type Hooks struct {
	// Waiting: the call has to wait for the lock. It may not stand in the queue yet.
	Waiting func(context.Context, Event)
	// Acquired: the call has a hold, after Event.Waited.
	Acquired func(context.Context, Event)
	// Renewed: the hold's lease was extended.
	Renewed func(Event)
	// Released: the hold was ended by its holder, after Event.Held.
	Released func(Event)
	// Lost: the hold ended otherwise, for the reason in Event.Err.
	Lost func(Event)
}

// Event describes one step of one hold.
type Event struct {
	Name   string // the lock's
	Owner  string
	Token  int64         // the hold's fencing token; 0 before there is one
	Waited time.Duration // until it was acquired
	Held   time.Duration // until it was released or lost
	Err    error
}
