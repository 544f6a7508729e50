//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/relock-go/relock"
)

// lockFlags declares the flags of a lock, which run and hold share.
func (j *job) lockFlags(fs *flags) {
	j.patience.flag(fs, "wait", "D: give up after D, with status 75 if the lock was taken, or 69 if Redis did not answer; 0 tries once (default: wait forever). D is 90s, 1m30s, or seconds without a unit")
	spanVar(fs, &j.ttl, "ttl", 30*time.Second, "D: lease: how long the lock stays taken after its machine dies (default 30s)")
	textVar(fs, &j.owner, "owner", "ID: name the owner: runs with the same owner do not exclude each other")
	fs.Func("label", "TEXT: label that info and waiters show for this run (default host:pid)", func(s string) error {
		j.about, j.label = append(j.about, relock.Label(s)), s
		return nil
	})
	fs.BoolVar(&j.fair, "fair", false, "grant the lock strictly in order of arrival")
	fs.BoolVar(&j.read, "read", false, "take a read/write lock for reading, shared with other readers")
	fs.BoolVar(&j.write, "write", false, "take a read/write lock for writing: excludes readers and other writers")
	fs.Func("n", "N: make NAME a semaphore: up to N runs at a time, in order of arrival. N can differ between runs: each run applies its own", func(s string) (err error) {
		j.runs, err = strconv.Atoi(s)
		if err != nil || j.runs < 1 {
			err = errors.New("must be a number of at least 1")
		}
		return err
	})
	spanVar(fs, &j.atLeast, "at-least", 0, "D: keep NAME taken for D after the grant, even if the lock is released sooner")
}

// consistent returns an error if the lock's flags exclude each other.
func (j *job) consistent() error {
	if j.read && j.write {
		return errors.New("-read and -write exclude each other")
	}
	if j.runs > 0 && (j.read || j.write) {
		return errors.New("-n cannot be combined with -read or -write")
	}
	if j.atLeast < 0 {
		return errors.New("-at-least must not be negative")
	}
	if j.atLeast != 0 && (j.read || j.write || j.runs > 0) {
		return errors.New("-at-least cannot be combined with -read, -write or -n")
	}
	return nil
}

func (j *job) options() []relock.LockOption {
	options := []relock.LockOption{relock.TTL(j.ttl)}
	if j.owner != "" {
		options = append(options, relock.Owner(j.owner))
	}
	if j.fair {
		options = append(options, relock.Fair())
	}
	if j.atLeast != 0 {
		options = append(options, relock.AtLeast(j.atLeast))
	}
	return options
}

func (j *job) lock(l *link) *relock.Lock {
	options := j.options()
	switch {
	case j.runs > 0:
		return l.locks.NewSemaphore(j.name, j.runs, options...)
	case j.read:
		return l.locks.NewRWLock(j.name, options...).RLocker()
	case j.write:
		return l.locks.NewRWLock(j.name, options...).WLocker()
	}
	return l.locks.NewLock(j.name, options...)
}

const (
	// silence is how long a wait prints nothing. noticeEvery is how often it then prints who holds the lock.
	silence     = time.Second
	noticeEvery = 30 * time.Second
)

// answersWithin is how long Redis may take to tell how a wait stands.
const answersWithin = 5 * time.Second

// announce reports a wait until stop is called. On a terminal and in JSON it reports who holds the lock.
// Everywhere, also with -q, it reports that Redis does not answer, or refuses the lock.
func (j *job) announce(ctx context.Context, lock *relock.Lock) (stop func()) {
	first := noticeEvery
	if j.json || isTerminal(j.err) {
		first = silence
	}
	ctx, cancel := context.WithCancel(ctx)
	var saying sync.WaitGroup
	saying.Go(func() {
		next := time.NewTimer(first)
		defer next.Stop()
		for answered := time.Now(); ; {
			select {
			case <-next.C:
				if err := j.sayWait(ctx, lock); err == nil {
					answered = time.Now()
				} else if ctx.Err() == nil {
					j.sayUnanswered(j.name, time.Since(answered), err)
				}
				next.Reset(noticeEvery)
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		saying.Wait()
	}
}

// A waitForm is the JSON that says who is in the way.
type waitForm struct {
	Waiting   string       `json:"waiting"` // the lock's name
	Holders   []holderForm `json:"holders"`
	Ahead     int          `json:"ahead"` // in the queue
	RestingMS int64        `json:"resting_ms"`
}

// sayWait reports how the wait stands. It returns an error if Redis did not tell.
func (j *job) sayWait(ctx context.Context, lock *relock.Lock) error {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	info, err := lock.Info(ctx)
	if err != nil {
		return err
	}
	if trouble := j.trouble.recent(); trouble != nil {
		j.warn("waiting for %q, %s; the latest request failed: %s", j.name, whoHas(info), trimName(trouble))
		return nil
	}
	if j.quiet {
		return nil
	}
	waiters, err := lock.Waiters(ctx)
	if err != nil {
		return err
	}
	ahead := max(0, slices.IndexFunc(waiters, j.isUs))
	switch {
	case j.json:
		j.tell(j.err, waitForm{j.name, holdersForm(info.Kind, info.Holders), ahead, ms(info.Resting)})
	case isTerminal(j.err):
		j.complain("relock: waiting for %q, %s; %d ahead in the queue\n", j.name, whoHas(info), ahead)
	}
	return nil
}

// whoHas describes the first holder of a lock, and how many others there are.
func whoHas(info relock.Info) string {
	switch {
	case len(info.Holders) > 0:
		h := info.Holders[0]
		by := fmt.Sprintf("held by %q for %v", cmp.Or(h.Label, h.Owner), h.Held.Round(time.Second))
		if n := len(info.Holders) - 1; n > 0 {
			by += fmt.Sprintf(" and %d more", n)
		}
		return by
	case info.Resting > 0:
		return fmt.Sprintf("taken for another %v (no holder)", info.Resting.Round(time.Second))
	}
	return "free"
}

// A takenError is the error of a wait that has ended, with the holder at that time.
type takenError struct {
	error
	by relock.Info
}

func (e takenError) Unwrap() error { return e.error }

// taken adds the holder to the error of a wait that has ended, if Redis answers at once.
func (j *job) taken(ctx context.Context, lock *relock.Lock, err error) error {
	if !errors.Is(err, relock.ErrNotAcquired) || j.quiet && !j.json {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, hasty)
	defer cancel()
	info, failed := lock.Info(ctx)
	if failed != nil {
		return err
	}
	return takenError{fmt.Errorf("%w: it is %s", err, whoHas(info)), info}
}

// A trouble keeps the latest error of a request for a lock that is still being tried, as the library logs it.
type trouble struct {
	mu  sync.Mutex
	at  time.Time
	err error
}

// recent returns the error if it came lately.
func (t *trouble) recent() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Since(t.at) > 2*answersWithin {
		return nil
	}
	return t.err
}

// Enabled and the following methods make trouble a slog.Handler.
func (t *trouble) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (t *trouble) WithAttrs([]slog.Attr) slog.Handler               { return t }
func (t *trouble) WithGroup(string) slog.Handler                    { return t }

func (t *trouble) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		err, is := a.Value.Any().(error)
		if is {
			t.mu.Lock()
			t.at, t.err = time.Now(), err
			t.mu.Unlock()
		}
		return !is
	})
	return nil
}

// isUs compares the label, which has the process ID in it unless -label is used.
func (j *job) isUs(w relock.Waiter) bool {
	label := j.label
	if label == "" {
		host, _ := os.Hostname() // if it fails, it failed in the library too
		label = fmt.Sprintf("%s:%d", host, os.Getpid())
	}
	return w.Label == label && (j.owner == "" || w.Owner == j.owner)
}
