package worker

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/test/torture/history"
	"github.com/relock-go/relock/test/torture/store"
)

// held is one hold and what the history knows of it.
type held struct {
	*relock.Hold
	event history.Event // what its events have in common
	mode  string        // as it is now; of its actor alone
	until atomic.Int64
}

// idKey is under which a call's number stands in its context, for the hooks.
type idKey struct{}

// hooks note what only the library sees.
func (w *worker) hooks() relock.Hooks {
	return relock.Hooks{
		Waiting: func(ctx context.Context, _ relock.Event) {
			if common, ok := ctx.Value(idKey{}).(history.Event); ok {
				common.What = history.Queued
				w.out.Add(common)
			}
		},
		Acquired: func(ctx context.Context, _ relock.Event) { upset(ctx) },
		Renewed:  func(e relock.Event) { w.renewed(e.Name) },
		Lost:     func(e relock.Event) { w.lost.note(e) },
	}
}

// renewed notes for each hold of a lock how long it is trusted now.
func (w *worker) renewed(name string) {
	w.mu.Lock()
	all := make([]*held, 0, len(w.holds[name]))
	for h := range w.holds[name] {
		all = append(all, h)
	}
	w.mu.Unlock()
	for _, h := range all {
		until := history.At(h.TrustedUntil())
		if until > h.until.Load() {
			h.until.Store(until)
			w.note(h.event, history.Trusted, func(e *history.Event) { e.Until = until })
		}
	}
}

func (w *worker) note(e history.Event, what history.What, more func(*history.Event)) {
	e.What = what
	if more != nil {
		more(&e)
	}
	w.out.Add(e)
}

func (w *worker) track(h *held) {
	w.mu.Lock()
	defer w.mu.Unlock()
	of := w.holds[h.event.Lock]
	if of == nil {
		of = map[*held]struct{}{}
		w.holds[h.event.Lock] = of
	}
	of[h] = struct{}{}
}

func (w *worker) untrack(h *held) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.holds[h.event.Lock], h)
}

// An actor is one goroutine that locks.
type actor struct {
	*worker
	store  *store.Client
	client *relock.Client
	name   string
	index  int // among those of its workload in its worker
	rand   *rand.Rand
	locks  map[string]*handles
}

// handles are an actor's own on one lock.
type handles struct {
	lock *relock.Lock   // exclusive, or the writing side
	read *relock.Lock   // nil: there is no reading side
	rw   *relock.RWLock // nil: it is none
	ttl  time.Duration
	kind string

	weight, of int // permits that each hold uses, of so many
}

// handle returns the actor's handle on a lock.
func (a *actor) handle(l Lock) (string, *handles) {
	name := a.Prefix + "/" + l.Name
	if h := a.locks[name]; h != nil {
		return name, h
	}
	opts := []relock.LockOption{relock.TTL(l.TTL)}
	if l.Kind == "fair" || l.Kind == "fair rw" {
		opts = append(opts, relock.Fair())
	}
	if l.Kind == "plain" && a.index%2 == 1 { // the others share its client, and ask on other terms
		opts = append(opts, relock.Sticky((l.TTL / 3).Truncate(time.Millisecond)))
	}
	h := &handles{ttl: l.TTL, kind: l.Kind}
	if l.Kind == "rw" || l.Kind == "fair rw" {
		h.rw = a.client.NewRWLock(name, opts...)
		h.lock, h.read = h.rw.WLocker(), h.rw.RLocker()
	} else {
		h.lock = a.client.NewLock(name, opts...)
	}
	a.locks[name] = h
	return name, h
}

// A try is how one call asks.
type try struct {
	owner string
	label string // the owner in the history, where the call has none
	read  bool
	once  bool // TryAcquire
	wait  time.Duration
}

// acquire makes the call and notes it.
func (a *actor) acquire(ctx context.Context, name string, hs *handles, t try) *held {
	e := history.Event{
		Worker: a.N, ID: a.ids.Add(1), Lock: name, Kind: hs.kind, Mode: "w", Owner: t.owner, TTL: hs.ttl.Milliseconds(),
	}
	lock := hs.lock
	if t.read {
		e.Mode, lock = "r", hs.read
	}
	if t.label != "" {
		e.Owner = t.label
	}
	if hs.of > 0 {
		e.Mode, e.Weight, e.Of = "s", int64(hs.weight), int64(hs.of)
	}
	if t.owner != "" {
		ctx = relock.WithOwner(ctx, t.owner)
	}
	ctx = context.WithValue(ctx, idKey{}, e)
	a.note(e, history.Call, nil)
	a.out.Flush()
	var h *relock.Hold
	err := errUpset
	defer func() {
		if errors.Is(err, errUpset) {
			a.note(e, history.Failed, func(e *history.Event) { e.Err = "upset" })
		}
	}()
	if t.once {
		h, err = lock.TryAcquire(ctx, t.wait)
	} else {
		h, err = lock.Acquire(ctx)
	}
	if err != nil {
		a.note(e, history.Failed, func(e *history.Event) { e.Err = short(err) })
		return nil
	}
	return a.acquired(e, h)
}

// acquired notes what the call has returned.
func (a *actor) acquired(e history.Event, h *relock.Hold) *held {
	e.Token = h.Token()
	held := &held{Hold: h, event: e, mode: e.Mode}
	a.track(held)
	until := max(1, history.At(h.TrustedUntil())) // 1: it was lost before this line
	held.until.Store(until)
	a.note(e, history.Acquired, func(e *history.Event) {
		e.Until = until
		if h.Err() != nil {
			e.By = a.lost.ago(h)
		}
	})
	return held
}

// effect asks the store, without a look at the hold: as code does that was
// paused just before.
func (a *actor) effect(h *held) {
	a.out.Flush()
	e := h.event
	_, err := a.store.Do(store.Effect{Worker: e.Worker, ID: e.ID, Lock: e.Lock, Kind: e.Kind, Mode: h.mode, Owner: e.Owner, Token: e.Token})
	if err != nil {
		panic(err) // the store outlives all workers
	}
}

// keep holds for some time, or until the loss is seen.
func (a *actor) keep(h *held, d time.Duration) {
	if d <= 0 {
		return
	}
	over := time.NewTimer(d)
	defer over.Stop()
	select {
	case <-over.C:
	case <-h.Lost():
	}
}

// release ends the hold and notes it. The history says "releasing" before
// anybody else can have the lock, even when this process is killed right after.
func (a *actor) release(h *held) {
	before := history.Now()
	if h.Err() != nil {
		a.note(h.event, history.Lost, nil)
	}
	a.note(h.event, history.Releasing, func(e *history.Event) { e.T = before })
	a.out.Flush()
	a.untrack(h)
	err := h.Release()
	a.note(h.event, history.Released, func(e *history.Event) { e.Err = short(err) })
}

// rest is a pause between two calls.
func (a *actor) rest(upTo time.Duration) {
	if upTo <= 0 {
		return
	}
	over := time.NewTimer(time.Duration(a.rand.Int64N(int64(upTo))))
	defer over.Stop()
	select {
	case <-over.C:
	case <-a.stop:
	}
}

// downgrade makes a write hold a read hold.
func (a *actor) downgrade(ctx context.Context, hs *handles, h *held) {
	a.note(h.event, history.Downgrade, nil)
	a.out.Flush()
	_ = hs.rw.Downgrade(ctx) // an error is one that the hold tells too
	h.mode = "r"
	a.section(h, a.shortly())
}
