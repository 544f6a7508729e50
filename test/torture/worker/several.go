package worker

import (
	"context"
	"fmt"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/test/torture/history"
)

// several takes two to four of twelve locks together, in any order that it names them.
func several(ctx context.Context, a *actor) {
	var locks []*relock.Lock
	var calls []history.Event
	for _, i := range a.rand.Perm(severals)[:2+a.rand.IntN(3)] {
		l := terms[fmt.Sprintf("several%d", i)]
		name, hs := a.handle(l)
		locks = append(locks, hs.lock)
		calls = append(calls, history.Event{
			Worker: a.N, ID: a.ids.Add(1), Lock: name, Kind: l.Kind, Mode: "w", TTL: l.TTL.Milliseconds(),
		})
	}
	for _, e := range calls {
		a.note(e, history.Call, func(e *history.Event) { e.On = history.Together })
	}
	a.out.Flush()
	bounded, cancel := a.patiently(ctx)
	defer cancel()
	together, err := relock.NewMulti(locks...).Acquire(bounded)
	if err != nil {
		for _, e := range calls {
			a.note(e, history.Failed, func(e *history.Event) { e.Err = short(err) })
		}
	} else {
		a.all(together, calls)
	}
	a.rest(15 * time.Millisecond)
}

// all is a critical section under all locks.
func (a *actor) all(together *relock.MultiHold, calls []history.Event) {
	under, cancel := context.WithCancel(context.Background())
	defer cancel()
	under = together.Context(under)
	var holds []*held
	for _, e := range calls {
		h, ok := relock.FromContext(under, e.Lock)
		if !ok {
			panic("a hold of several locks has no hold of one of them")
		}
		holds = append(holds, a.acquired(e, h))
	}
	for _, h := range holds {
		a.section(h, a.shortly())
	}
	before := history.Now()
	for _, h := range holds {
		if h.Err() != nil {
			a.note(h.event, history.Lost, nil)
		}
		a.note(h.event, history.Releasing, func(e *history.Event) { e.T = before })
		a.untrack(h)
	}
	a.out.Flush()
	err := together.Release()
	for _, h := range holds {
		a.note(h.event, history.Released, func(e *history.Event) { e.Err = short(err) })
	}
}
