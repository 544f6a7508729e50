// Package history is what a run of the torture rig leaves behind: one event a
// line, as JSON, in a file for each worker process and one for the rig itself.
package history

// Clock is the machine's monotonic clock (CLOCK_BOOTTIME) in nanoseconds, the
// same for all processes of one machine.

// An Event is one thing that happened, as seen by the process that writes it.
// Its time is taken before the call for What == Call, after the return else.
type Event struct {
	T      int64  `json:"t"`             // ns on the machine's monotonic clock
	Worker int    `json:"w"`             // process; -1: the rig
	What   What   `json:"e"`             // what happened
	ID     int64  `json:"i,omitempty"`   // of the call and of the hold it makes: unique within the worker
	Lock   string `json:"l,omitempty"`   // name of the lock
	Kind   string `json:"k,omitempty"`   // plain, fair, rw, fair rw, semaphore
	Mode   string `json:"m,omitempty"`   // w, r, or s of a semaphore
	Owner  string `json:"o,omitempty"`   // of a named owner; "" for an anonymous call
	Token  int64  `json:"f,omitempty"`   // fencing token of the hold
	TTL    int64  `json:"ttl,omitempty"` // ms, with Call and Acquired
	Until  int64  `json:"u,omitempty"`   // Acquired: until when the hold is trusted, ns on the same clock; Call: the interval of Once, in ns; Fault: when it ended
	Err    string `json:"err,omitempty"` // short name of the error, as "lost", "ctx", "not acquired", "unconfirmed"
	Fault  string `json:"x,omitempty"`   // Fault: its kind
	On     string `json:"on,omitempty"`  // Call: Together; Effect: what is done to a buffer, with item By; Fault: what it befell (worker 3, server 0, link 2)
	Weight int64  `json:"n,omitempty"`   // Call: how many permits of a semaphore it asks for
	Of     int64  `json:"of,omitempty"`  // Call: how many the semaphore has; Effect: how many items its buffer takes
	By     int64  `json:"by,omitempty"`  // Fault: how far a clock was stepped, ns; Start: the seed; Swept: how many; Call: the ticket that it resumes; Failed: how long the interval of Once had lasted
}

// What says what an Event is.
type What string

// A hold is valid from Acquired until the first of Lost and Releasing with its
// ID, or its worker's death.
const (
	Call      What = "call"      // a lock call begins: Lock, TryLock, RLock, ...
	Acquired  What = "acquired"  // it returned a hold
	Failed    What = "failed"    // it returned without one; Err says why
	Trusted   What = "trusted"   // the hold was renewed: it is trusted until Until
	Lost      What = "lost"      // the hold's Lost channel was seen closed, or Err() was not nil
	Releasing What = "releasing" // Unlock begins: the critical section is over
	Released  What = "released"  // Unlock returned; Err: "" confirmed, else why not
	Effect    What = "effect"    // the store was asked to take a write with Token; Err: "" accepted, "stale" refused
	Fault     What = "fault"     // the rig's: a fault was injected
	Died      What = "died"      // the rig's: a worker process is gone (killed), written with its time of death
	Leak      What = "leak"      // the rig's: something was left behind; Err says what
	Free      What = "free"      // the rig's probe: a lock with live waiters was seen free (nobody held) for Until-T ns
)
