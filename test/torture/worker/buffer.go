package worker

import (
	"context"
	"fmt"
	"time"

	"github.com/relock-go/relock/test/torture/history"
	"github.com/relock-go/relock/test/torture/store"
)

// roomy is how many items a buffer takes.
const roomy = 3

// buffer puts items into a buffer of the store, or takes them: half of the actors do the
// one, half the other. Each waits on a condition, and wakes one of the others by a single
// signal. It signals before it moves, so that no item is there without a signal, wherever
// it is killed. One of the buffers is used seldom: where signals are rare, the next
// does not make up for one that was lost.
func buffer(ctx context.Context, a *actor) {
	a.client = a.clients[a.index/2%len(a.clients)]
	name, hs := a.handle(terms[fmt.Sprintf("buffer%d", (a.index/2+a.N)%2)])
	puts := a.index%2 == 0
	waits, wakes := "not empty", "not full"
	if puts {
		waits, wakes = wakes, waits
	}
	bounded, cancel := a.patiently(ctx)
	h := a.acquire(bounded, name, hs, try{})
	cancel()
	for h != nil {
		there := a.ask(h, store.Look, 0)
		if there.Verdict != store.Accepted || a.stopping() {
			a.release(h)
			break
		}
		if puts && there.Items < roomy || !puts && there.Items > 0 {
			a.signal(ctx, hs, h, wakes)
			if puts {
				a.ask(h, store.Put, int64(a.N)<<32|h.event.ID)
			} else {
				a.ask(h, store.Take, there.First)
			}
			a.release(h)
			break
		}
		h = a.await(ctx, hs, h, waits)
	}
	if puts && hs.kind == "fair" {
		a.rest(2 * time.Second)
	}
	a.rest(10 * time.Millisecond)
}

// ask does something to the buffer, without a look at the hold.
func (a *actor) ask(h *held, what string, item int64) store.Answer {
	a.out.Flush()
	e := h.event
	answer, err := a.store.Do(store.Effect{
		Worker: e.Worker, ID: e.ID, Lock: e.Lock, Kind: e.Kind, Mode: "w", Owner: e.Owner, Token: e.Token, Do: what, Item: item, Room: roomy,
	})
	if err != nil {
		panic(err) // the store outlives all workers
	}
	return answer
}

// signal wakes one who waits on a condition.
func (a *actor) signal(ctx context.Context, hs *handles, h *held, condition string) {
	ctx, cancel := context.WithTimeout(ctx, hs.ttl)
	defer cancel()
	before := history.Now()
	err := hs.lock.NewCond(condition).Signal(ctx)
	a.note(h.event, history.Signal, func(e *history.Event) {
		e.T, e.Until, e.On, e.Err = before, history.Now(), condition, short(err)
	})
}

// await gives the hold up to wait on a condition, and returns the one that it is then; nil:
// the lock could not be had again.
func (a *actor) await(ctx context.Context, hs *handles, h *held, condition string) *held {
	d := time.Duration(1500+a.rand.IntN(3000)) * time.Millisecond
	before := history.Now()
	if h.Err() != nil {
		a.note(h.event, history.Lost, nil)
	}
	a.note(h.event, history.Releasing, func(e *history.Event) { e.T = before })
	next := h.event
	next.ID, next.Token = a.ids.Add(1), 0
	a.note(next, history.Await, func(e *history.Event) {
		e.T, e.On, e.By, e.Until = before, condition, h.event.ID, before+int64(d)
	})
	a.out.Flush()
	a.untrack(h)
	signalled, err := hs.lock.NewCond(condition).WaitFor(ctx, d)
	if err != nil {
		a.note(next, history.Failed, func(e *history.Event) { e.Err = short(err) })
		err = h.Release()
		a.note(h.event, history.Released, func(e *history.Event) { e.Err = short(err) })
		return nil
	}
	a.note(h.event, history.Released, nil)
	if !signalled {
		next.Err = "time"
	}
	again := a.acquired(next, h.Hold)
	again.event.Err = ""
	return again
}
