package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/test/torture/history"
)

// intervals are those of the names that are run once in each. The clocks of servers differ
// by whole numbers of them.
var intervals = []time.Duration{400 * time.Millisecond, time.Second}

// once calls Once whenever an interval begins by a clock of the actor's own, which is
// ahead of others' or behind by up to half of it.
func once(ctx context.Context, a *actor) {
	i := a.rand.IntN(len(intervals))
	every, l := intervals[i], terms[fmt.Sprintf("once%d", i)]
	ahead := time.Duration((a.N*2+a.index)%5-2) * every / 4
	mine := time.Now().Add(ahead)
	a.hang(mine.Truncate(every).Add(every).Sub(mine))
	if a.stopping() {
		return
	}
	e := history.Event{
		Worker: a.N, ID: a.ids.Add(1), Lock: a.Prefix + "/" + l.Name, Kind: l.Kind, Mode: "w", TTL: l.TTL.Milliseconds(),
	}
	a.note(e, history.Call, func(e *history.Event) { e.Until = int64(every) })
	a.out.Flush()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	before := time.Now()
	var h *held
	_, err := a.client.Once(ctx, e.Lock, every, func(ctx context.Context) (err error) {
		h, err = a.run(ctx, e, every)
		return err
	}, relock.TTL(l.TTL))
	switch {
	case h != nil:
		a.note(e, history.Released, func(e *history.Event) { e.Err = unspent(err) })
	case err != nil:
		a.note(e, history.Failed, func(e *history.Event) { e.Err = short(err) })
	default:
		after := time.Now()
		a.note(e, history.Failed, func(e *history.Event) {
			e.T, e.Err = history.At(after), "not acquired"
			if begin := after.Truncate(every); !before.Before(begin) {
				e.By = int64(after.Sub(begin))
			}
		})
	}
}

// run is what happens once: some runs last for longer than their interval, and some give
// it back.
func (a *actor) run(ctx context.Context, e history.Event, every time.Duration) (*held, error) {
	hold, ok := relock.FromContext(ctx, e.Lock)
	if !ok {
		panic("the context of a run is of no hold")
	}
	h := a.acquired(e, hold)
	d := a.shortly()
	if a.rand.IntN(20) == 0 {
		d = time.Duration(a.rand.Int64N(2 * int64(every)))
	}
	a.section(h, d)
	var err error
	if a.rand.IntN(8) == 0 {
		err = relock.ErrUnspent
	}
	if h.Err() != nil {
		a.note(h.event, history.Lost, nil)
	}
	a.note(h.event, history.Releasing, func(e *history.Event) {
		if err != nil {
			e.Err = "unspent"
		}
	})
	a.out.Flush()
	a.untrack(h)
	return h, err
}

// unspent is how the history calls the end of a run that may have given its interval back.
func unspent(err error) string {
	if errors.Is(err, relock.ErrUnspent) && !errors.Is(err, relock.ErrNotHeld) && !errors.Is(err, relock.ErrUnconfirmed) {
		return ""
	}
	return short(err)
}
