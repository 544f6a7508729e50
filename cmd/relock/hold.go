//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/relock-go/relock"
)

const holdAbout = `Prints a line when it has acquired the lock. Releases the lock on TERM, INT, HUP, QUIT,
USR1 or USR2, or after -for.
`

const holdAfter = `Exit status: 0 released; 128+n if signal n ended the wait; 64 wrong usage, or it would
wait forever for an outer relock run, or this -owner holds NAME for reading and asks to
write; 69 Redis cannot be reached or refuses the request, even at the release, or NAME
is in use as another kind of lock; 75 not acquired within -wait; 76 the lock was lost.
`

// A heldForm is the JSON that hold prints when it holds, and when it has released.
type heldForm struct {
	Event string `json:"event"` // held or released
	Name  string `json:"name"`
	Token int64  `json:"token"`
}

func (t *tool) hold(fs *flags) action {
	j := &job{tool: t}
	var long patience
	long.flag(fs, "for", "D: release the lock after D (default: on a signal)")
	j.lockFlags(fs)
	j.server.flags(fs, t.env)
	return func(ctx context.Context, words, more []string) int {
		if words = append(words, more...); len(words) != 1 {
			return t.fail(usageError{fmt.Errorf("want one NAME, not %s; to run a command, use relock run", cmp.Or(quotedAll(words), "none"))})
		}
		j.name = words[0]
		if err := j.consistent(); err != nil {
			return t.fail(usageError{err})
		}
		signals := make(chan os.Signal, 16)
		notify(signals)
		defer signal.Stop(signals)
		token := int64(0)
		_, err := j.under(ctx, signals, func(hold *relock.Hold) (int, error) {
			token = hold.Token()
			t.held(heldForm{"held", j.name, token})
			return 0, long.keep(ctx, hold, signals)
		})
		if err != nil {
			return t.fail(err)
		}
		if j.unsure != nil {
			return t.failAs(exitUnavailable, j.unsure)
		}
		t.held(heldForm{"released", j.name, token})
		return 0
	}
}

func (t *tool) held(f heldForm) {
	switch {
	case t.json:
		t.tell(t.out, f)
	case !t.quiet:
		t.say("%s: %s, token %d\n", f.Name, f.Event, f.Token)
	}
}

// keep returns when the hold must end or has been lost.
func (p *patience) keep(ctx context.Context, hold *relock.Hold, signals <-chan os.Signal) error {
	var over <-chan time.Time
	if p.bounded {
		timer := time.NewTimer(p.wait)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-signals:
	case <-over:
	case <-ctx.Done():
	case <-hold.Lost():
	}
	return hold.Err()
}

const waitAbout = `Checks five times a second, and does not join the queue. When this command ends, a waiter
may already hold the lock.
`

const waitAfter = `Exit status: 0 the lock is free; 75 it is still held or resting; 128+n if signal n ended
the wait; 64 wrong usage; 69 Redis cannot be reached or refuses the request.
`

// freeEvery is how often wait asks Redis.
const freeEvery = 200 * time.Millisecond

type freeForm struct {
	Name     string `json:"name"`
	Free     bool   `json:"free"`
	WaitedMS int64  `json:"waited_ms"`
}

// A freeWait is a wait until nobody holds a lock.
type freeWait struct {
	*tool
	patience
	began time.Time
}

func (t *tool) waitFree(fs *flags) action {
	w := &freeWait{tool: t}
	w.flag(fs, "wait", "D: give up after D; 0 checks once (default: wait forever)")
	asks := t.inspectBy(fs, w.arrive, w.await)
	return func(ctx context.Context, words, more []string) int {
		ctx, stop := untilSignal(ctx)
		defer stop()
		w.began = time.Now()
		return asks(ctx, words, more)
	}
}

// arrive returns a link to a Redis that has answered. A Redis that does not answer gets as long as -wait says.
func (w *freeWait) arrive(ctx context.Context, s *server, name string) (*link, error) {
	o, stop := w.watch(ctx, name)
	defer stop()
	return s.reach(ctx, &w.patience, w.began, o)
}

// await waits, and reports how that has ended.
func (w *freeWait) await(ctx context.Context, l *relock.Lock) error {
	o, stop := w.watch(ctx, l.Name())
	info, err := w.awaitFree(ctx, l, w.began, o)
	stop()
	if s, is := errors.AsType[interrupted](context.Cause(ctx)); is {
		err = s
	}
	if err != nil {
		return err
	}
	waited, free := time.Since(w.began), len(info.Holders) == 0 && info.Resting == 0
	switch {
	case w.json:
		w.tell(w.out, freeForm{l.Name(), free, ms(waited)})
	case free && !w.quiet:
		w.say("%s is free\n", l.Name())
	}
	if !free {
		return takenError{fmt.Errorf("%w: after %v %q is still %s", relock.ErrNotAcquired, waited.Round(time.Millisecond), l.Name(), whoHas(info)), info}
	}
	return nil
}

// untilSignal returns a context that ends with the first signal, as its cause.
func untilSignal(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	notify(signals)
	go func() {
		select {
		case s := <-signals:
			cancel(interrupted{s.(syscall.Signal)})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(nil)
		signal.Stop(signals)
	}
}

// awaitFree polls until nobody holds, Redis refuses for good, or the patience is over. It returns the last answer.
func (p *patience) awaitFree(ctx context.Context, l *relock.Lock, began time.Time, o *outage) (info relock.Info, err error) {
	again := time.NewTicker(freeEvery)
	defer again.Stop()
	for {
		info, err = p.ask(ctx, l, began)
		o.heard(err)
		free := err == nil && len(info.Holders) == 0 && info.Resting == 0
		if free || err != nil && !errors.Is(err, relock.ErrUnavailable) || p.over(began) {
			return info, err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return info, ctx.Err()
		}
	}
}

// ask bounds the answer of Redis by what is left of the patience.
func (p *patience) ask(ctx context.Context, l *relock.Lock, began time.Time) (relock.Info, error) {
	if p.bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.left(began))
		defer cancel()
	}
	return l.Info(ctx)
}
