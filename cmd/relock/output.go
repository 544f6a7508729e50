//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/relock-go/relock"
)

// What -json writes: one object a line. docs/operations.md has these forms, and a test compares them. Fields
// may be added, but not renamed or removed. Durations are whole ms.

type failure struct {
	Error  string `json:"error"`
	Status int    `json:"status"`
}

// A takenForm is a failure because another owner holds the lock.
type takenForm struct {
	failure
	Holders   []holderForm `json:"holders"`
	RestingMS int64        `json:"resting_ms"`
}

// failureOf returns the JSON form of an error.
func failureOf(err error, status int) any {
	f := failure{trimName(err), status}
	if taken, is := errors.AsType[takenError](err); is {
		return takenForm{f, holdersForm(taken.by.Kind, taken.by.Holders), ms(taken.by.Resting)}
	}
	return f
}

type holderForm struct {
	Owner   string `json:"owner"`
	Mode    string `json:"mode"` // lock, read or write
	Holds   int    `json:"holds"`
	Token   int64  `json:"token"`
	LeaseMS int64  `json:"lease_ms"`
	HeldMS  int64  `json:"held_ms"`
	Label   string `json:"label"` // "" if unknown
	Permits int    `json:"permits"`
}

type lockForm struct {
	Name      string       `json:"name"`
	Kind      string       `json:"kind"` // "" for a lock that was never taken
	Holders   []holderForm `json:"holders"`
	Waiting   int          `json:"waiting"`
	Awaiting  int          `json:"cond_waiting"` // on conditions
	RestingMS int64        `json:"resting_ms"`
	Permits   int          `json:"permits"` // of a semaphore, in use
}

type waiterForm struct {
	Name     string `json:"name"`
	Place    int    `json:"place"` // from 1
	Owner    string `json:"owner"`
	Mode     string `json:"mode"`
	WaitedMS int64  `json:"waited_ms"`
	Label    string `json:"label"`
}

type removedForm struct {
	Name     string       `json:"name"`
	Removed  []holderForm `json:"removed"`
	RestedMS int64        `json:"rested_ms"` // how long nobody could have had it
}

// tell prints one object. It returns 0, as the status of a verb that ends with it.
func (t *tool) tell(to io.Writer, object any) (status int) {
	if err := json.NewEncoder(to).Encode(object); to == t.out {
		t.heard(err)
	}
	return 0
}

func modeOf(kind string, read bool) string {
	switch {
	case read:
		return "read"
	case shared(kind):
		return "write"
	}
	return "lock"
}

func holdersForm(kind string, holders []relock.Holder) []holderForm {
	all := []holderForm{} // never null
	for _, h := range holders {
		all = append(all, holderForm{
			Owner: h.Owner, Mode: modeOf(kind, h.Read), Holds: h.Holds, Token: h.Token,
			LeaseMS: ms(h.TTL), HeldMS: ms(h.Held), Label: h.Label, Permits: h.Weight,
		})
	}
	return all
}

func lockFormOf(info relock.Info) lockForm {
	return lockForm{
		Name: info.Name, Kind: info.Kind, Holders: holdersForm(info.Kind, info.Holders),
		Waiting: info.Waiters, Awaiting: info.CondWaiters, RestingMS: ms(info.Resting), Permits: info.Permits,
	}
}

func ms(d time.Duration) int64 { return d.Milliseconds() }
