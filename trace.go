package relock

import (
	"context"
	"time"
)

// Hooks are functions that are called as locks change hands, while the library holds no mutex. Waiting, Acquired,
// GaveUp and Released are called on the caller's goroutine: one that blocks delays the call. Renewed, RenewalFailed and
// Lost are called on goroutines of the client: one that blocks delays no call, no renewal and no message. Close and
// Shutdown wait for hooks that run, so a hook must not call either. Hooks may be called from several goroutines at the
// same time. Any hook may be nil.
//
// Renewed and RenewalFailed are called once for each renewal, with the newest of the holds that share the lease. The
// others are called once for each call or hold. A Multi and a Quorum call the hooks for each of their locks, often on
// goroutines of their own. A panic there may end the process.
//
// A hook must return. If Waiting or Acquired panics or ends its goroutine, the call has no hold: what Redis granted is
// given back. If Acquired was called for such a hold, Released is called too. A panic of GaveUp or Released continues
// on the calling goroutine after all else is done: the hold has ended. A panic of Renewed, RenewalFailed or Lost ends
// the process, as any panic of a goroutine does in Go.
type Hooks struct {
	// Waiting is called when a call has to wait, because others hold the lock or are ahead of it. It is called once for a
	// call, perhaps before the call is in the queue. Acquired or GaveUp follows.
	Waiting func(context.Context, Event)
	// Acquired is called when a call has a hold, right before the call returns. Event.Waited is how long it waited.
	Acquired func(context.Context, Event)
	// GaveUp is called when a call has ended without a hold. Event.Waited is how long it waited. Event.Err is the reason,
	// such as a taken lock, an ended context or an outage. The call returns that error, except that TryLock, TryDo and
	// Once return no error if the lock was taken. GaveUp is not called if Waiting or Acquired did not return. Nor is it if
	// the call was refused at once: for a name, an option, ctx's owner, a deadlock, an ended ctx.
	GaveUp func(context.Context, Event)
	// Renewed is called when a hold's lease was extended, as it is every third of its TTL.
	Renewed func(Event)
	// RenewalFailed is called when a renewal was not answered, or was refused. Event.Err is the reason. This is not yet a
	// loss: the renewal is tried again until the hold's trust ends, and then Lost is called.
	RenewalFailed func(Event)
	// Released is called when the holder has ended the hold, by Unlock, Release or Detach, or at the end of a Do.
	// Event.Held is how long it was held. Event.Err is the error of the release. It is ErrLost if Redis' answer was the
	// first to show the loss; then Lost is not called. Each hold ends with one call of Released or of Lost.
	Released func(Event)
	// Lost is called when a hold ended before its release: its Unlock is still to come. Event.Err is the reason, an
	// ErrLost. Lost is also called if Unlock is the first to see, by the clock, that the lease has ended. After Lost, the
	// Unlock or Release of that hold does not call Released. If Acquired is set, Lost is called only for holds that
	// Acquired was called for, and after it.
	Lost func(Event)
}

// Trace sets the hooks of a client: functions that are called as its locks change hands, for logs, metrics and traces.
// If there are several Trace options, the last counts: combine their Hooks by Hooks.Join.
func Trace(h Hooks) Option {
	return option(func(c *config) error {
		c.hooks = h
		return nil
	})
}

// Join returns hooks that call h's and then those of the others, in that order. It leaves out nil hooks, and does not
// change h. If one panics or calls runtime.Goexit, the others are still called.
func (h Hooks) Join(others ...Hooks) Hooks {
	for _, o := range others {
		h.Waiting, h.Acquired, h.GaveUp = bothOf(h.Waiting, o.Waiting), bothOf(h.Acquired, o.Acquired), bothOf(h.GaveUp, o.GaveUp)
		h.Renewed, h.RenewalFailed = both(h.Renewed, o.Renewed), both(h.RenewalFailed, o.RenewalFailed)
		h.Released, h.Lost = both(h.Released, o.Released), both(h.Lost, o.Lost)
	}
	return h
}

// both returns a hook that calls both hooks, the second even if the first panics. If one is nil, it returns the other.
func both(first, then func(Event)) func(Event) {
	switch {
	case first == nil:
		return then
	case then == nil:
		return first
	}
	return func(e Event) {
		defer then(e)
		first(e)
	}
}

// bothOf is both for hooks that get a context.
func bothOf(first, then func(context.Context, Event)) func(context.Context, Event) {
	switch {
	case first == nil:
		return then
	case then == nil:
		return first
	}
	return func(ctx context.Context, e Event) {
		defer then(ctx, e)
		first(ctx, e)
	}
}

// An Event describes one step of one hold, or of a call that has none yet. Every hook gets Name, Owner, Kind and Read,
// and Token if there is a hold. Waited, Held and Err are zero except in the hooks that their comments name.
type Event struct {
	// Name is the lock's name.
	Name string
	// Owner is the name that Hold.Owner returns. In Waiting and GaveUp it is the given name, or "" if none was given.
	Owner string
	// Token is the hold's fencing token. It is 0 in Waiting and GaveUp.
	Token int64
	// Waited is how long the call took until it had the hold, or gave up. Only Acquired and GaveUp have it.
	Waited time.Duration
	// Held is how long the hold lasted, from its acquisition. Only Released and Lost have it. For Lost it runs until the
	// loss was noticed, so a pause of the process counts. After a Cond.Wait it begins again at zero.
	Held time.Duration
	// Err is why the call gave up (GaveUp), the renewal failed (RenewalFailed), or the hold was lost (Lost). In Released
	// it is what Unlock returns, so nil if all went well.
	Err error
	// Kind is the kind of the lock: "plain", "fair", "rw", "fair rw" or "semaphore".
	Kind string
	// Read reports that the hold is for reading, or that the call wants to read. It is false for all but read/write locks.
	Read bool
}
