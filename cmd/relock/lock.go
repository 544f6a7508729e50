//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/relock-go/relock"
)

// lockFlags are those of a lock, which run and hold take alike.
func (j *job) lockFlags(fs *flags) {
	j.patience.flag(fs, "wait", "D: give up after that long; 0: one attempt (default: wait for ever). A Redis that does not answer meanwhile is no lock that is taken: 69")
	spanVar(fs, &j.ttl, "ttl", 30*time.Second, "D: the lease: how long the lock outlives a machine that dies (default 30s)")
	fs.StringVar(&j.owner, "owner", "", "ID: named owner: runs with the same one do not exclude each other")
	fs.Func("label", "TEXT: who this run is, for people: what info and waiters show (default host:pid)", func(s string) error {
		j.about, j.label = append(j.about, relock.Label(s)), s
		return nil
	})
	fs.BoolVar(&j.fair, "fair", false, "let runs in strictly in the order in which they came")
	fs.BoolVar(&j.read, "read", false, "share a read/write lock with the other readers")
	fs.BoolVar(&j.write, "write", false, "take a read/write lock for writing: no reader, no other writer")
	fs.Func("n", "N: a semaphore: up to N runs of NAME at a time, in the order in which they came. Runs may name different numbers: each goes by its own", func(s string) (err error) {
		j.runs, err = strconv.Atoi(s)
		if err == nil && j.runs < 1 {
			err = errors.New("less than one")
		}
		return err
	})
	spanVar(fs, &j.atLeast, "at-least", 0, "D: keep NAME taken until D after it was acquired, by nobody once it is released")
}

// consistent says what of the lock's flags does not go together.
func (j *job) consistent() error {
	if j.read && j.write {
		return errors.New("-read and -write exclude each other")
	}
	if j.runs > 0 && (j.read || j.write) {
		return errors.New("-n is for a semaphore, -read and -write are for a read/write lock")
	}
	j.server.patience = j.patience.first()
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
	// silence is how long a wait says nothing, and noticeEvery how often it says for whom
	// it waits after that.
	silence     = time.Second
	noticeEvery = 30 * time.Second
)

// announce says on a terminal, or in JSON, for whom the wait is, until the returned
// function is called.
func (j *job) announce(ctx context.Context, lock *relock.Lock) (stop func()) {
	if j.quiet || !j.json && !isTerminal(j.err) {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var saying sync.WaitGroup
	saying.Go(func() {
		next := time.NewTimer(silence)
		defer next.Stop()
		for {
			select {
			case <-next.C:
				j.sayWait(ctx, lock)
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

// A waitForm says for whom a wait is.
type waitForm struct {
	Waiting string       `json:"waiting"` // the lock's name
	Holders []holderForm `json:"holders"`
	Ahead   int          `json:"ahead"` // in the queue
}

// sayWait drops errors: whoever waits is told what the matter was when the wait ends.
func (j *job) sayWait(ctx context.Context, lock *relock.Lock) {
	info, err := lock.Info(ctx)
	if err != nil {
		return
	}
	waiters, err := lock.Waiters(ctx)
	if err != nil || ctx.Err() != nil {
		return
	}
	ahead := max(0, slices.IndexFunc(waiters, j.isUs))
	if j.json {
		j.tell(j.err, waitForm{j.name, holdersForm(info.Kind, info.Holders), ahead})
		return
	}
	by := "free"
	switch {
	case len(info.Holders) > 0:
		h := info.Holders[0]
		who := h.Label
		if who == "" {
			who = h.Owner
		}
		by = fmt.Sprintf("held by %q for %v", who, h.Held.Round(time.Second))
		if n := len(info.Holders) - 1; n > 0 {
			by += fmt.Sprintf(" and %d more", n)
		}
	case info.Resting > 0:
		by = fmt.Sprintf("taken by nobody for another %v", info.Resting.Round(time.Second))
	}
	j.complain("relock: waiting for %q, %s; %d ahead in the queue\n", j.name, by, ahead)
}

// isUs goes by the label, which has the process in it unless -label says otherwise.
func (j *job) isUs(w relock.Waiter) bool {
	label := j.label
	if label == "" {
		host, _ := os.Hostname() // the library has none either
		label = fmt.Sprintf("%s:%d", host, os.Getpid())
	}
	return w.Label == label && (j.owner == "" || w.Owner == j.owner)
}
