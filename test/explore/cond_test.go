package explore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// The explorer of conditions: processes that lock, wait, signal, give up, are cut off and
// die by chance, with the real client and the real scripts in virtual time. What is looked
// for is a second holder, a signal that wakes nobody, and somebody who waits for ever.

const condTTL = 3 * time.Second

// A sleeper is a process of it.
type sleeper struct {
	*rig.Actor
	d     *dorm
	index int
	l     *relock.Lock
	c     *relock.Cond
	hold  *relock.Hold
	next  *relock.Hold       // that a Lock under way has come to
	calls rig.Going          // of a Lock, or a Wait
	stop  context.CancelFunc // of the call under way
	heal  func()
	dead  bool
	state string // idle, locks, holds, sleeps
	nap   *nap   // while it sleeps
	woken *nap   // from which it has come, until it has unlocked or sleeps again
	ctx   context.Context
}

// A nap is one wait; over once its sleeper has unlocked, or waits again.
type nap struct {
	by   *sleeper
	over bool
}

// A dorm is one run.
type dorm struct {
	x       *rig.Lab
	rng     *rand.Rand
	all     []*sleeper
	sent    [][]*nap // by signal: who waited then, for all that Redis knew
	wrong   string
	seen    map[string]int
	trouble bool
	trace   func(string, ...any)
}

func (d *dorm) say(format string, args ...any) {
	if d.trace != nil {
		d.trace("%9.4f %s", d.x.Now().Seconds(), fmt.Sprintf(format, args...))
	}
}

func (d *dorm) violate(format string, args ...any) {
	if d.wrong == "" {
		d.wrong = fmt.Sprintf(format, args...)
		d.say("VIOLATION: %s", d.wrong)
	}
}

// pick is one that is in that state, and not cut off for good.
func (d *dorm) pick(state string) *sleeper {
	var all []*sleeper
	for _, s := range d.all {
		if !s.dead && s.state == state {
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all[d.rng.IntN(len(all))]
}

func (s *sleeper) lock() {
	ctx, stop := context.WithCancel(s.ctx)
	s.state, s.stop, s.next = "locks", stop, nil
	s.calls = rig.Beside(func() (err error) { s.next, err = s.l.Acquire(ctx); return err })
}

func (s *sleeper) sleep() {
	s.spend()
	ctx, stop := context.WithCancel(s.ctx)
	s.state, s.stop, s.nap = "sleeps", stop, &nap{by: s}
	limit := time.Duration(max(s.d.rng.IntN(16)-12, 0)) * condTTL
	s.calls = rig.Beside(func() error {
		if limit > 0 {
			_, err := s.c.WaitFor(ctx, limit)
			return err
		}
		return s.c.Wait(ctx)
	})
}

// spend notes that what it was signalled for is done with.
func (s *sleeper) spend() {
	if s.woken != nil {
		s.woken.over, s.woken = true, nil
	}
}

// unlock has the hold released, however that ends.
func (s *sleeper) unlock() {
	lost := s.hold.Err() != nil
	s.state = "locks" // nothing else is done by it meanwhile
	s.calls = rig.Beside(func() error { _ = s.hold.Release(); return context.Canceled })
	if !lost && s.heal == nil {
		s.spend()
	}
}

// signal notes who is to be woken by it: one of all who wait. Of these some may have been
// signalled before, and some be cut off: they wake up in any case.
func (s *sleeper) signal() {
	ctx, stop := context.WithTimeout(s.ctx, condTTL)
	defer stop()
	var those []*nap
	for _, o := range s.d.all {
		if o.nap != nil && !o.dead {
			those = append(those, o.nap)
		}
	}
	if err := s.c.Signal(ctx); err == nil && len(those) > 0 {
		s.d.seen["signals that somebody waited for"]++
		s.d.sent = append(s.d.sent, those)
	}
}

func (s *sleeper) name() string { return fmt.Sprint("p", s.index) }

// collect notes which calls have returned, and judges who holds.
func (d *dorm) collect() {
	synctest.Wait()
	holders := 0
	for _, s := range d.all {
		select {
		case err := <-s.calls:
			d.say("p%d: %s is over: %v", s.index, s.state, err)
			s.calls = nil
			switch {
			case s.nap != nil:
				s.woken, s.nap = s.nap, nil
				s.state = "holds"
				if s.hold.Err() != nil { // its signal is somebody else's
					s.woken = nil
				}
			case err == nil:
				s.state, s.hold = "holds", s.next
			default:
				s.state = "idle"
			}
		default:
		}
		if s.hold != nil && s.hold.Err() == nil {
			holders++
		}
	}
	if holders > 1 {
		d.violate("%d hold", holders)
	}
}

var condFates = []redistest.Verdict{redistest.CutReply, redistest.SwallowReply, redistest.CutBefore, redistest.Lose}

// happen does one thing.
func (d *dorm) happen() {
	n := d.rng.IntN(100)
	do := func(state, what string, f func(s *sleeper)) {
		if s := d.pick(state); s != nil {
			d.say("p%d: %s", s.index, what)
			d.seen[what]++
			f(s)
		}
	}
	switch {
	case n < 25:
		do("idle", "locks", (*sleeper).lock)
	case n < 45:
		do("holds", "sleeps", (*sleeper).sleep)
	case n < 59:
		do("holds", "signals", (*sleeper).signal)
	case n < 72:
		do("holds", "unlocks", (*sleeper).unlock)
	case n < 75:
		do("sleeps", "gives up", func(s *sleeper) { s.stop() })
	case n < 76:
		do("locks", "gives up locking", func(s *sleeper) { s.stop() })
	case n < 81 && d.trouble:
		do([]string{"sleeps", "holds"}[n%2], "is cut off", func(s *sleeper) { s.cut() })
	case n < 88 && d.trouble:
		do([]string{"sleeps", "sleeps", "holds", "locks"}[n%4], "dies", (*sleeper).die)
	case n < 93 && d.trouble:
		do([]string{"sleeps", "holds"}[n%2], "has a reply lost", func(s *sleeper) {
			s.Fate([]string{"await", "signal", "abandon", "release", "acquire"}[d.rng.IntN(5)], 1, condFates[d.rng.IntN(4)])
		})
	default:
		virtual.Sleep([]time.Duration{time.Millisecond, condTTL / 7, condTTL / 2, condTTL + condTTL/3}[d.rng.IntN(4)])
	}
}

func (s *sleeper) cut() {
	if s.heal == nil {
		s.heal = s.Link.Cut()
	} else {
		s.heal()
		s.heal = nil
	}
}

// die has at most three in a run be gone without a word.
func (s *sleeper) die() {
	dead := 0
	for _, o := range s.d.all {
		if o.dead {
			dead++
		}
	}
	if dead < 3 {
		s.dead = true
		s.Link.Hole()
	}
}
