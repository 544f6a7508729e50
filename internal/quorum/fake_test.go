package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock/internal/quorum"
	"github.com/relock-go/relock/internal/virtual"
)

var (
	errTaken       = errors.New("taken")
	errClosed      = errors.New("closed")
	errUnconfirmed = errors.New("unconfirmed")
	errLost        = errors.New("lost")
	errNotHeld     = errors.New("not held")
	errSilent      = errors.New("silent")
	errRefused     = errors.New("refused")
)

const (
	lease    = 3 * time.Second
	patience = lease / 6
	timeout  = 2 * time.Second // of a request that is not answered
)

// A fakePrimary grants a lock to one at a time, in memory. What it has granted is renewed while it answers.
type fakePrimary struct {
	mu      sync.Mutex // guards the following fields
	holder  *fakeHold
	counter int64
	changed chan struct{} // closed with each change, and made anew
	silent  time.Time     // since when it does not answer; zero: it does
	final   error         // what it says to each request
	closed  bool
	exits   bool // a hook ends the goroutine of each release
}

// A fakeHold is what it has granted.
type fakeHold struct {
	of    *fakePrimary
	token int64
	ended chan struct{}
	lost  error
}

// newPrimaries returns primaries whose counters of tokens are these.
func newPrimaries(counters ...int64) (all []*fakePrimary) {
	for _, n := range counters {
		all = append(all, &fakePrimary{counter: n, changed: make(chan struct{})})
	}
	return all
}

// lockOn returns a contender for the lock.
func lockOn(all []*fakePrimary) *quorum.Lock {
	l := &quorum.Lock{TTL: lease, Errors: quorum.Errors{
		Taken: errTaken, Closed: errClosed, Silent: errSilent, Unconfirmed: errUnconfirmed, Lost: errLost, NotHeld: errNotHeld,
		Final: func(err error) bool { return errors.Is(err, errRefused) || errors.Is(err, errClosed) },
	}}
	l.Check = func(context.Context, []quorum.Hold, []int) error { return nil }
	l.BeginLeaving = func() func() { return func() {} }
	for _, p := range all {
		l.Primaries = append(l.Primaries, p)
	}
	return l
}

// run runs a test in virtual time. An hour after it no goroutine may be left.
func run(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(t)
		virtual.Sleep(time.Hour)
	})
}

// gather has a majority, or the test fails.
func gather(t *testing.T, l *quorum.Lock) *quorum.Majority {
	t.Helper()
	h, err := l.Attempt(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func wantIs(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}

// change changes a primary, and wakes whoever waits for that.
func (p *fakePrimary) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *fakePrimary) silence() { p.change(func() { p.silent = time.Now() }) }
func (p *fakePrimary) heal()    { p.change(func() { p.silent = time.Time{} }) }

// lose has the primary forget what it has granted, and its client hear of that.
func (p *fakePrimary) lose(why error) {
	p.change(func() {
		if p.holder != nil {
			p.holder.lost = why
			close(p.holder.ended)
			p.holder = nil
		}
	})
}

// forget has the primary forget what it has granted, and nobody hear of that.
func (p *fakePrimary) forget() { p.change(func() { p.holder = nil }) }

// held says which of the primaries have granted the lock.
func held(all []*fakePrimary) (of []int) {
	for i, p := range all {
		p.mu.Lock()
		if p.holder != nil {
			of = append(of, i)
		}
		p.mu.Unlock()
	}
	return of
}

func wantHeld(t *testing.T, all []*fakePrimary, of ...int) {
	t.Helper()
	synctest.Wait()
	if got := held(all); !slices.Equal(got, of) {
		t.Errorf("held on %v, want %v", got, of)
	}
}

// answer waits until the primary answers, and until ready has an answer of its own.
func (p *fakePrimary) answer(ctx context.Context, limit time.Duration, ready func() bool) error {
	over := time.NewTimer(limit)
	defer over.Stop()
	for {
		p.mu.Lock()
		silent, changed := !p.silent.IsZero(), p.changed
		if !silent && ready() {
			p.mu.Unlock()
			return nil
		}
		p.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-over.C:
			return errSilent
		}
	}
}

func (p *fakePrimary) Try(ctx context.Context, wait time.Duration) (quorum.Hold, error) {
	limit := timeout
	if wait > 0 {
		limit = wait
	}
	return p.ask(ctx, limit, wait <= 0)
}

func (p *fakePrimary) Queue(ctx context.Context) (quorum.Hold, error) {
	return p.ask(ctx, time.Hour, false)
}

func (p *fakePrimary) ask(ctx context.Context, limit time.Duration, once bool) (h quorum.Hold, err error) {
	taken := false
	failed := p.answer(ctx, limit, func() bool {
		switch {
		case p.closed:
			err = errClosed
		case p.final != nil:
			err = p.final
		case p.holder != nil:
			taken, err = true, errTaken
			return once
		default:
			p.counter++
			p.holder = &fakeHold{of: p, token: p.counter, ended: make(chan struct{})}
			h, err = p.holder, nil
		}
		return true
	})
	if failed != nil && !taken {
		err = failed
	}
	return h, err
}

func (p *fakePrimary) Probe(ctx context.Context) error {
	return p.answer(ctx, timeout, func() bool { return true })
}

func (p *fakePrimary) Spawn(fn func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	go fn()
	return true
}

func (h *fakeHold) Err() error {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	if h.lost == nil && !h.of.silent.IsZero() && time.Since(h.of.silent) >= lease {
		h.lost = errLost // which ends no context: as a client that has yet to find it
	}
	return h.lost
}

func (h *fakeHold) TrustedUntil() time.Time {
	if h.Err() != nil {
		return time.Time{}
	}
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	if !h.of.silent.IsZero() {
		return h.of.silent.Add(lease)
	}
	return time.Now().Add(lease)
}

func (h *fakeHold) Token() int64  { return h.token }
func (h *fakeHold) Owner() string { return fmt.Sprint("owner ", h.token) }

func (h *fakeHold) Context(parent context.Context) context.Context {
	ctx, cancel := context.WithCancel(parent)
	go func() {
		select {
		case <-h.ended:
		case <-parent.Done():
		}
		cancel()
	}()
	return ctx
}

func (h *fakeHold) Raise(ctx context.Context, within time.Duration, token int64) (held bool) {
	err := h.of.answer(ctx, within, func() bool {
		held = h.of.holder == h && h.of.final == nil
		if held {
			h.of.counter = max(h.of.counter, token)
		}
		return true
	})
	return err == nil && held
}

// Release is unconfirmed where the primary does not answer in time, and tells it all the same.
func (h *fakeHold) Release() error {
	err, was := h.of.answer(context.Background(), timeout, func() bool { return true }), error(nil)
	h.of.change(func() {
		if was = h.lost; h.of.holder == h {
			h.of.holder = nil
			close(h.ended)
		} else if was == nil {
			was = errLost // which its client had yet to hear
		}
		h.lost = errNotHeld
	})
	if h.of.exits {
		runtime.Goexit()
	}
	if err != nil && was == nil {
		return errUnconfirmed
	}
	return was
}

func (h *fakeHold) MarkReturned(bool) {}

func (h *fakeHold) WhenWanted(f func()) {}

func (h *fakeHold) AskWhetherHeld(context.Context, time.Duration) {}

// A deaf primary's holds are held, and it does not hear of tokens.
type deaf struct{ *fakePrimary }

func (p deaf) Try(ctx context.Context, wait time.Duration) (quorum.Hold, error) {
	h, err := p.fakePrimary.Try(ctx, wait)
	return deafHold{h}, err
}

type deafHold struct{ quorum.Hold }

func (deafHold) Raise(context.Context, time.Duration, int64) bool { return false }
