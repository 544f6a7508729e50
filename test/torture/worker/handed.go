package worker

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/test/torture/history"
	"github.com/relock-go/relock/test/torture/store"
)

// handed hands holds from process to process: it resumes a ticket that the store has for
// it, or acquires the lock, and detaches most of what it has held for a moment. Some tickets
// are given to two.
func handed(ctx context.Context, a *actor) {
	name, hs := a.on("handed", 2)
	h := a.resume(ctx, name, hs)
	if h == nil {
		t := try{label: fmt.Sprintf("~%d-%d", a.N, a.ids.Add(1))}
		if a.rand.IntN(2) == 0 {
			t = try{owner: t.label[1:]}
		}
		t.once, t.wait = true, time.Duration(a.rand.IntN(100))*time.Millisecond // then it looks for tickets again
		h = a.acquire(ctx, name, hs, t)
	}
	if h != nil {
		a.section(h, a.shortly())
		if a.rand.IntN(4) == 0 {
			a.release(h)
		} else {
			a.detach(ctx, h)
		}
	}
	a.rest(15 * time.Millisecond)
}

// detach gives a hold up for a ticket, which it posts. The history has what nobody holds
// meanwhile as a call of its own.
func (a *actor) detach(ctx context.Context, h *held) {
	keep := time.Duration(50+a.rand.IntN(550)) * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	before := history.Now()
	if h.Err() != nil {
		a.note(h.event, history.Lost, nil)
	}
	a.note(h.event, history.Releasing, func(e *history.Event) { e.T = before })
	t := h.event
	t.Worker, t.ID, t.TTL = history.Nobody, int64(a.N)<<32|a.ids.Add(1), keep.Milliseconds()
	a.note(t, history.Call, func(e *history.Event) { e.T, e.Token = before, 0 })
	a.out.Flush()
	a.untrack(h)
	ticket, err := h.Detach(ctx, keep)
	a.note(h.event, history.Released, func(e *history.Event) { e.Err = short(err) })
	if err != nil {
		a.note(t, history.Failed, func(e *history.Event) { e.Err = short(err) })
		_ = h.Release() // one that was lost is to be ended
		return
	}
	a.note(t, history.Acquired, func(e *history.Event) { e.Until = before + int64(keep-keep/100-2*time.Millisecond) })
	a.out.Flush()
	text := strings.Join([]string{strconv.FormatInt(t.ID, 10), t.Owner, string(ticket)}, ",")
	a.mail(store.Effect{Lock: t.Lock, Do: store.Post, Item: int64(1 + a.rand.IntN(2)), Text: text})
}

func (a *actor) mail(e store.Effect) string {
	answer, err := a.store.Do(e)
	if err != nil {
		panic(err) // the store outlives all workers
	}
	return answer.Text
}

// resume holds what a ticket has that was posted, if there is one and it is the first.
func (a *actor) resume(ctx context.Context, name string, hs *handles) *held {
	letter := strings.SplitN(a.mail(store.Effect{Lock: name, Do: store.Fetch}), ",", 3)
	if len(letter) < 3 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	id, _ := strconv.ParseInt(letter[0], 10, 64)
	e := history.Event{
		Worker: a.N, ID: a.ids.Add(1), Lock: name, Kind: hs.kind, Mode: "w", Owner: letter[1], TTL: hs.ttl.Milliseconds(),
	}
	a.note(e, history.Call, func(e *history.Event) { e.By = id })
	a.out.Flush()
	h, err := a.client.Resume(ctx, relock.Ticket(letter[2]))
	if err != nil {
		a.note(e, history.Failed, func(e *history.Event) { e.Err = short(err) })
		return nil
	}
	return a.acquired(e, h)
}
