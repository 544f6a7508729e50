package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/test/torture/history"
)

// This file is what callers do that documentation does not forbid: a crowd under
// one name, goroutines that share a handle and hang, hooks that do not return.

// crowd has hundreds of calls of one owner wait behind a holder, hold, and go.
func crowd(ctx context.Context, a *actor) {
	name, hs := a.on("crowd", 2)
	ctx, cancel := context.WithTimeout(ctx, 8*time.Second)
	defer cancel()
	first := a.acquire(ctx, name, hs, try{})
	if first == nil {
		return
	}
	t := try{owner: fmt.Sprintf("crowd-%d", a.rand.IntN(2)), read: hs.read != nil && a.rand.IntN(4) > 0}
	if a.rand.IntN(2) == 0 {
		t.owner = a.name
	}
	n := 100 + a.rand.IntN(200)
	var in, all sync.WaitGroup
	in.Add(n)
	for range n {
		all.Go(func() {
			h := a.acquire(ctx, name, hs, t)
			in.Done()
			if h == nil {
				return
			}
			in.Wait() // nobody goes before all have come
			a.release(h)
		})
	}
	a.keep(first, time.Duration(100+a.rand.IntN(200))*time.Millisecond)
	a.release(first)
	all.Wait()
	a.rest(1500 * time.Millisecond)
}

// shared are the handles that all actors of a worker have together.
func (a *actor) shared(base string, n int) (string, *handles) {
	l := terms[fmt.Sprintf("%s%d", base, a.rand.IntN(n))]
	a.mu.Lock()
	defer a.mu.Unlock()
	own, client := a.locks, a.client
	a.locks, a.client = a.common, a.clients[0]
	defer func() { a.locks, a.client = own, client }()
	return a.handle(l)
}

// How long a goroutine hangs that has lost its hold, and when its hold is removed.
const (
	hangs   = 5 * time.Second
	removed = 50 * time.Millisecond
)

// sharing uses a handle together with others. Some hang while they hold: somebody
// removes the hold, and the goroutine unlocks it much later.
func sharing(ctx context.Context, a *actor) {
	name, hs := a.shared("shared", 2)
	ctx, cancel := a.patiently(ctx)
	defer cancel()
	h := a.acquire(ctx, name, hs, try{})
	if h == nil {
		return
	}
	if a.rand.IntN(8) > 0 {
		a.section(h, a.shortly())
		a.release(h)
		a.rest(100 * time.Millisecond)
		return
	}
	a.effect(h)
	a.keep(h, removed)
	a.remove(name, hs)
	a.keep(h, removed)
	if h.Err() != nil {
		a.note(h.event, history.Lost, nil)
	}
	a.hang(hangs / 2)
	if a.rand.IntN(2) == 0 {
		a.remove(name, hs) // now it is somebody else's, who may wait behind this one
	}
	a.hang(hangs / 2)
	a.release(h)
}

// hang waits for all of d, or until the worker is to stop.
func (a *actor) hang(d time.Duration) {
	over := time.NewTimer(d)
	defer over.Stop()
	select {
	case <-over.C:
	case <-a.stop:
	}
}

// remove is an operator's ForceUnlock, which the history calls a fault.
func (a *actor) remove(name string, hs *handles) {
	e := history.Event{T: history.Now(), Worker: a.N, What: history.Fault, Fault: history.ForceUnlock, Lock: name, On: a.Prefix}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, _ = hs.lock.ForceUnlock(ctx)
	e.Until = history.Now()
	a.out.Add(e)
}

// errUpset is what a hook panics with.
var errUpset = errors.New("a hook that panics")

// upsetKey is under which a call's context says what its Acquired hook does.
type upsetKey struct{}

func upset(ctx context.Context) {
	switch ctx.Value(upsetKey{}) {
	case "panic":
		panic(errUpset)
	case "exit":
		runtime.Goexit()
	}
}

// upsets makes calls whose hooks do not return, and some whose do.
func upsets(ctx context.Context, a *actor) {
	name, hs := a.on("upset", 1)
	ctx, cancel := a.patiently(ctx)
	defer cancel()
	how := []string{"", "", "panic", "exit"}[a.rand.IntN(4)]
	if how == "" {
		if h := a.acquire(ctx, name, hs, try{}); h != nil {
			a.section(h, a.shortly())
			a.release(h)
		}
		a.rest(100 * time.Millisecond)
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if r := recover(); r != nil && r != any(errUpset) {
				panic(r)
			}
		}()
		a.acquire(context.WithValue(ctx, upsetKey{}, how), name, hs, try{})
	}()
	<-done
	a.rest(100 * time.Millisecond)
}

// pair has one client wait for what another one holds and then leaves alone: only
// the message, or the waiter's own questions, can give it the lock.
func pair(ctx context.Context, a *actor) {
	l := terms[fmt.Sprintf("pair%d", a.N%pairs)]
	name, hs := a.handle(l)
	ctx, cancel := context.WithTimeout(ctx, 6*time.Second)
	defer cancel()
	h := a.acquire(ctx, name, hs, try{})
	if h == nil {
		return
	}
	other := *a
	other.locks = map[string]*handles{}
	for _, c := range a.clients {
		if c != a.client {
			other.client = c
		}
	}
	_, others := other.handle(l)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if h := other.acquire(ctx, name, others, try{}); h != nil {
			other.release(h)
		}
	}()
	a.keep(h, time.Duration(20+a.rand.IntN(200))*time.Millisecond)
	a.release(h)
	<-done
	a.rest(300 * time.Millisecond)
}

// lostAt remembers when the library told of losses, by lock and token.
type lostAt struct {
	mu  sync.Mutex // guards the following field
	all map[string]int64
}

func (l *lostAt) note(e relock.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) > 1000 || l.all == nil {
		l.all = map[string]int64{}
	}
	l.all[fmt.Sprint(e.Name, " ", e.Token)] = history.Now()
}

// ago is how long ago the hold was lost; 0: it was not, or nobody knows.
func (l *lostAt) ago(h *relock.Hold) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.all[fmt.Sprint(h.Name(), " ", h.Token())]; at != 0 {
		return history.Now() - at
	}
	return 0
}
