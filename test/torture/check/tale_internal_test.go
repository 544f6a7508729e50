package check

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/relock-go/relock/test/torture/history"
)

const ms = int64(time.Millisecond)

// start is the time of a tale's beginning: long after the workers began, so that
// their first seconds are over.
const start = int64(time.Hour)

// A tale is a history made by hand. Its times are in ms.
type tale struct {
	kind   string
	events []history.Event
}

func (x *tale) add(at int64, e history.Event) *tale {
	e.T = start + at*ms
	x.events = append(x.events, e)
	return x
}

const lock = "one/x"

// semaphoreOf is how many permits the semaphores have.
const semaphoreOf = 5

// A held describes one call in a tale. 0: that did not happen.
type held struct {
	w                           int
	id                          int64
	mode, owner                 string
	token, digits               int64 // in microseconds, and of the owner in nanoseconds behind that
	call, queued, got           int64
	until                       int64 // 0: a ttl of 1 s after got
	releasing, released         int64
	lost, failed, died, trusted int64
	down                        int64
	why                         string // of Released or Failed
	resumes                     int64  // a ticket
	every, into                 int64  // of Once
	unspent, on                 string
	weight                      int64 // of so many permits as the tale's semaphore has
}

func (x *tale) hold(h held) *tale {
	kind := x.kind
	if kind == "" {
		kind = "plain"
	}
	if h.mode == "" {
		h.mode = "w"
	}
	of := int64(0)
	if h.weight > 0 {
		h.mode, of = "s", semaphoreOf
	}
	if h.id == 0 {
		h.id = h.token
	}
	on := func(at int64, what history.What, e history.Event) {
		if at == 0 {
			return
		}
		e.Worker, e.ID, e.What, e.Lock = h.w, h.id, what, lock
		x.add(at, e)
	}
	on(h.call, history.Call, history.Event{Kind: kind, Mode: h.mode, Owner: h.owner, TTL: 1000, Weight: h.weight, Of: of, By: h.resumes, Until: h.every * ms, On: h.on})
	on(h.queued, history.Queued, history.Event{})
	if h.until == 0 {
		h.until = h.got + 985
	}
	on(h.got, history.Acquired, history.Event{Token: h.token*us + h.digits, Until: start + h.until*ms})
	on(h.failed, history.Failed, history.Event{Err: h.why, By: h.into * ms})
	on(h.trusted, history.Trusted, history.Event{Until: start + (h.trusted+985)*ms})
	on(h.down, history.Downgrade, history.Event{})
	on(h.lost, history.Lost, history.Event{})
	on(h.releasing, history.Releasing, history.Event{Err: h.unspent})
	on(h.released, history.Released, history.Event{Err: h.why})
	if h.died != 0 {
		x.add(h.died, history.Event{What: history.Died, Worker: h.w})
	}
	return x
}

// brief is a hold of 10 ms of an anonymous call.
func (x *tale) brief(w int, token, at int64) *tale {
	return x.hold(held{w: w, token: token, call: at, got: at + 1, releasing: at + 10, released: at + 11})
}

func (x *tale) effect(at int64, w int, token int64, err string) *tale {
	return x.add(at, history.Event{What: history.Effect, Worker: w, ID: token, Lock: lock, Token: token * us, Mode: "w", Err: err})
}

func (x *tale) fault(from, to int64, kind, on string) *tale {
	return x.add(from, history.Event{Worker: -1, What: history.Fault, Fault: kind, On: on, Until: start + to*ms})
}

// input is what the tale would be when read.
func (x *tale) input() *input {
	in := newInput()
	begun := map[int]bool{}
	for _, e := range x.events {
		if !begun[e.Worker] && e.What != history.Effect {
			begun[e.Worker] = true
			in.first[e.Worker] = 1
		}
	}
	for _, e := range x.events {
		in.event(&e, "tale")
	}
	in.close()
	return in
}

// verdict is the names of what was violated.
func verdict(in *input) (names []Name, report Report) {
	k := judge(in, Options{Minimums: &Minimums{}})
	return slices.Sorted(maps.Keys(k.report.Counts)), k.report
}

func TestViolationsAreCaughtByNameAndTheirNeighboursPass(t *testing.T) {
	for _, test := range tales {
		t.Run(strings.ReplaceAll(test.name, " ", "_"), func(t *testing.T) {
			names, report := verdict(test.tale.input())
			if !slices.Contains(names, test.want) && test.want != "" {
				t.Errorf("%q was not caught, but %q", test.want, names)
			}
			if test.want == "" && len(names) > 0 {
				t.Errorf("nothing is wrong, but:\n%s", report.Markdown())
			}
		})
	}
}
