//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
)

// workerCommand is the hidden command with which the demo starts its processes.
const workerCommand = "demo-worker"

// A role is the first line that a worker reads. It is not an argument, because the URL may have a password in
// it.
type role struct {
	URL, Prefix, Lock, Owner string
}

// An event is a report of a worker: one JSON object a line.
type event struct {
	At     time.Time
	What   string // one of the following texts, as the timeline shows them
	Token  int64  `json:",omitempty"`
	N      int64  `json:",omitempty"`
	Detail string `json:",omitempty"`
	OK     bool   `json:",omitempty"` // the write was accepted
	Lost   bool   `json:",omitempty"` // the hold's Err is ErrLost and its Lost channel is closed

	from *worker
}

const (
	isReady  = "is ready"
	waits    = "waits"
	locked   = "has the lock"
	refused  = "tries: taken"
	unlocks  = "unlocks"
	lowers   = "downgrades"
	lowered  = "keeps reading"
	unlocked = "has unlocked" // not printed: the next process may have entered before this one reports
	counted  = "counted"
	finished = "has finished"
	lost     = "is told: lost"
	answered = "checks its hold"
	wrote    = "writes"
	broke    = "has failed"
	gone     = "has ended"
)

// An actor is the inside of a worker: it obeys standard input.
type actor struct {
	role
	out   io.Writer
	rdb   redis.UniversalClient
	locks *relock.Client
	rw    *relock.RWLock // of its newest write hold
	holds []*relock.Hold // the newest last
}

// work runs a worker process. It ends with its standard input, so that no worker outlives its demo.
func (t *tool) work(ctx context.Context) int {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in := bufio.NewScanner(t.in)
	a := &actor{out: t.out}
	if !in.Scan() || json.Unmarshal(in.Bytes(), &a.role) != nil {
		return t.fail(usageError{errors.New(workerCommand + " is only for relock demo")})
	}
	at := server{url: a.URL, prefix: a.Prefix}
	l, err := at.connect(ctx, relock.Defaults(relock.TTL(demoTTL)), relock.TokenKeep(demoKeep), relock.Trace(relock.Hooks{
		Waiting: func(context.Context, relock.Event) { a.tell(event{What: waits}) },
		Lost:    func(e relock.Event) { a.tell(event{What: lost, Token: e.Token}) },
	}))
	if err != nil {
		return t.fail(err)
	}
	defer l.close()
	a.rdb, a.locks = l.rdb, l.locks
	a.tell(event{What: isReady})

	orders := make(chan string)
	go func() {
		defer close(orders)
		defer cancel() // also ends an order that waits for a lock
		for in.Scan() {
			orders <- in.Text()
		}
	}()
	if a.Owner != "" {
		ctx = relock.WithOwner(ctx, a.Owner)
	}
	for order := range orders {
		if err := a.do(ctx, order); err != nil {
			a.tell(event{What: broke, Detail: err.Error()})
		}
	}
	return 0
}

// tell prints an event. Several goroutines call it: one event is one Write, which the system does not split.
func (a *actor) tell(e event) {
	e.At = time.Now()
	line, _ := json.Marshal(e) // cannot fail: plain fields
	_, _ = a.out.Write(append(line, '\n'))
}

func (a *actor) do(ctx context.Context, order string) error {
	verb, arg, _ := strings.Cut(order, " ")
	switch verb {
	case "lock":
		return a.lock(ctx, a.locks.NewLock(a.Lock), "")
	case "fair":
		return a.lock(ctx, a.locks.NewLock(a.Lock, relock.Fair()), "")
	case "read":
		return a.lock(ctx, a.locks.NewRWLock(a.Lock).RLocker(), "reading")
	case "write":
		a.rw = a.locks.NewRWLock(a.Lock)
		return a.lock(ctx, a.rw.WLocker(), "writing")
	case "downgrade":
		return a.downgrade(ctx)
	case "try":
		return a.try(ctx)
	case "unlock":
		return a.unlock()
	case "ask":
		return a.ask()
	case "store":
		return a.write(ctx, arg)
	case "count", "race":
		return a.count(ctx, arg, verb == "count")
	}
	return fmt.Errorf("no such order: %q", order)
}

// lock uses a new handle each time, like nested functions that know nothing of each other.
func (a *actor) lock(ctx context.Context, l *relock.Lock, how string) error {
	h, err := l.Acquire(ctx)
	if err != nil {
		return err
	}
	a.holds = append(a.holds, h)
	a.tell(event{What: locked, Token: h.Token(), Detail: how})
	return nil
}

// downgrade turns the newest write hold into a read hold.
func (a *actor) downgrade(ctx context.Context) error {
	h, err := a.newest()
	if err != nil {
		return err
	}
	a.tell(event{What: lowers, Token: h.Token()})
	if err := a.rw.Downgrade(ctx); err != nil {
		return err
	}
	a.tell(event{What: lowered, Token: h.Token()})
	return nil
}

func (a *actor) try(ctx context.Context) error {
	h, err := a.locks.NewLock(a.Lock).TryAcquire(ctx, 0)
	if errors.Is(err, relock.ErrNotAcquired) {
		a.tell(event{What: refused})
		return nil
	}
	if err != nil {
		return err
	}
	a.tell(event{What: locked, Token: h.Token()})
	return h.Release()
}

func (a *actor) newest() (*relock.Hold, error) {
	if len(a.holds) == 0 {
		return nil, errors.New("no hold")
	}
	return a.holds[len(a.holds)-1], nil
}

func (a *actor) unlock() error {
	h, err := a.newest()
	if err != nil {
		return err
	}
	a.holds = a.holds[:len(a.holds)-1]
	a.tell(event{What: unlocks, Token: h.Token()})
	if err := h.Release(); err != nil {
		return err
	}
	a.tell(event{What: unlocked, Token: h.Token()})
	return nil
}

func (a *actor) ask() error {
	h, err := a.newest()
	if err != nil {
		return err
	}
	e := event{What: answered, Token: h.Token(), Detail: "held"}
	if err := h.Err(); err != nil {
		e.Detail = trimName(err)
		select {
		case <-h.Lost():
			e.Lost = errors.Is(err, relock.ErrLost)
		default:
		}
	}
	a.tell(e)
	return nil
}

// count increments the counter n times by reading it and writing it back. Without a lock, increments by
// others in between are lost.
func (a *actor) count(ctx context.Context, times string, locking bool) error {
	n, err := strconv.Atoi(times)
	if err != nil {
		return err
	}
	increment := func(token int64) error {
		value, err := a.rdb.Get(ctx, counterKey(a.Prefix)).Int64()
		if err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
		if err := a.rdb.Set(ctx, counterKey(a.Prefix), value+1, demoKeep).Err(); err != nil {
			return err
		}
		a.tell(event{What: counted, N: value + 1, Token: token})
		return nil
	}
	for range n {
		if !locking {
			err = increment(0)
		} else {
			err = a.counting(ctx, increment)
		}
		if err != nil {
			return err
		}
	}
	a.tell(event{What: finished})
	return nil
}

func (a *actor) counting(ctx context.Context, increment func(token int64) error) error {
	lock := a.locks.NewLock(a.Lock)
	return lock.Do(ctx, func(context.Context) error { return increment(lock.Token()) })
}

func (a *actor) write(ctx context.Context, value string) error {
	h, err := a.newest()
	if err != nil {
		return err
	}
	ok, err := storeWrite(ctx, a.rdb, a.Prefix, h.Token(), value)
	if err != nil {
		return err
	}
	e := event{What: wrote, Token: h.Token(), OK: ok, Detail: value + " refused"}
	if ok {
		e.Detail = value + " accepted"
	}
	a.tell(e)
	return nil
}
