// Package renewal runs tasks when they are due: one goroutine and one heap serve any number of tasks. It
// knows only time.
package renewal

import (
	"container/heap"
	"sync"
	"time"

	"github.com/relock-go/relock/internal/clock"
)

// tick bounds how long the schedule sleeps. Go's timers stop while the machine is suspended. So a deadline that passed
// meanwhile is noticed at the latest one tick after the machine resumes.
const tick = 50 * time.Millisecond

// A Task is due at one instant or is idle. Its zero value, with Of set, is idle.
type Task struct {
	Of any // what the task is about, for the schedule's run function

	// Guarded by the schedule's mu:

	at  *moment // when the task is due; nil: idle
	pos int     // index in the moment's tasks
}

// A moment is all tasks that are due at one time. They share one entry in the heap, because many renewals often fall
// together.
type moment struct {
	due   time.Duration // on the schedule's own clock
	tasks []*Task
	pos   int // index in the heap
}

// A Schedule passes tasks that are due to its run function. A task is idle after that, until it is set again. The
// goroutine starts with the first task, and ends one tick after the last.
type Schedule struct {
	clock *clock.Clock
	run   func(due []*Task)
	wg    sync.WaitGroup

	mu      sync.Mutex // guards the following fields and every task's at and pos
	moments moments
	byDue   map[time.Duration]*moment
	spare   []*moment     // for reuse
	waiting int           // number of tasks
	base    clock.Instant // when advance was first called
	slept   time.Duration // sum of the suspensions since base
	elapsed time.Duration // the schedule's own clock, set by advance
	wakeAt  time.Duration // when the goroutine wakes up, on that clock; a task due later need not wake it
	running bool          // the goroutine runs
	idle    bool          // there was no task when the goroutine last looked: it ends at the next look
	closed  bool
	wakeup  chan struct{} // capacity one: a task is due before wakeAt, or the schedule closes
}

// New returns a schedule without tasks. run is called on the schedule's goroutine, one call at a time. It
// must not block, because tasks that become due in the meantime wait for it.
func New(c *clock.Clock, run func(due []*Task)) *Schedule {
	return &Schedule{clock: c, run: run, byDue: make(map[time.Duration]*moment), wakeup: make(chan struct{}, 1)}
}

// Set makes t due at the given instant and at no other.
func (s *Schedule) Set(t *Task, due clock.Instant) { s.SetAbout(t, due, 0) }

// SetAbout is Set for a task that may run earlier, by less than grain. Then tasks that are due at about the same time
// run together, at little more than the cost of one.
func (s *Schedule) SetAbout(t *Task, due clock.Instant, grain time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	now := s.advance()
	left := due.Awake(now)
	if less := now.Until(due); left-less > tick {
		left = less // the machine was suspended after due was made
	}
	at := s.elapsed + left
	if grain > 0 && at > 0 {
		at -= at % grain
	}
	if t.at == nil || t.at.due != at {
		s.remove(t)
		s.insert(t, at)
	}
	s.idle = false
	if !s.running {
		s.running = true
		s.wakeAt = 0
		s.wg.Go(s.loop)
	} else if at < s.wakeAt {
		s.wake()
	}
}

// insert makes t due at that time. It needs s.mu.
func (s *Schedule) insert(t *Task, due time.Duration) {
	m := s.byDue[due]
	if m == nil {
		if n := len(s.spare); n > 0 {
			m, s.spare = s.spare[n-1], s.spare[:n-1]
		} else {
			m = &moment{}
		}
		m.due = due
		s.byDue[due] = m
		heap.Push(&s.moments, m)
	}
	t.at, t.pos = m, len(m.tasks)
	m.tasks = append(m.tasks, t)
	s.waiting++
}

// remove makes t idle. It needs s.mu.
func (s *Schedule) remove(t *Task) {
	m := t.at
	if m == nil {
		return
	}
	last := m.tasks[len(m.tasks)-1]
	m.tasks[t.pos], last.pos = last, t.pos
	m.tasks[len(m.tasks)-1] = nil
	m.tasks = m.tasks[:len(m.tasks)-1]
	t.at = nil
	s.waiting--
	if len(m.tasks) == 0 {
		heap.Remove(&s.moments, m.pos)
		s.recycle(m)
	}
}

// recycle takes in a moment that has left the heap. It keeps a few small ones for reuse. It needs s.mu.
func (s *Schedule) recycle(m *moment) {
	delete(s.byDue, m.due)
	if len(s.spare) < 16 && cap(m.tasks) <= 64 {
		s.spare = append(s.spare, m)
	}
}

// advance advances the schedule's own clock: the monotonic clock plus all suspensions of more than a tick. A suspension
// moves the two clocks of an instant apart, so instants from before and after it have no common order. This single
// number orders them. advance needs s.mu.
func (s *Schedule) advance() clock.Instant {
	now := s.clock.Now()
	if s.base.IsZero() {
		s.base = now
	}
	mono := now.Awake(s.base)
	if slept := now.Sub(s.base) - mono; slept > s.slept+tick {
		s.slept = slept
	}
	s.elapsed = max(s.elapsed, mono+s.slept)
	return now
}

// Drop makes t idle. A run that has already received t may still be running.
func (s *Schedule) Drop(t *Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(t)
}

// Len returns how many tasks wait for their time.
func (s *Schedule) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting
}

// Close drops every task and returns when the goroutine has ended. After it Set does nothing. run must not call it.
func (s *Schedule) Close() {
	s.mu.Lock()
	s.closed = true
	for _, m := range s.moments {
		for _, t := range m.tasks {
			t.at = nil
		}
	}
	s.moments, s.byDue, s.waiting = nil, nil, 0
	s.wake()
	s.mu.Unlock()
	s.wg.Wait()
}

// wake wakes the goroutine. It needs s.mu.
func (s *Schedule) wake() {
	select {
	case s.wakeup <- struct{}{}:
	default: // a wake-up is pending, and the goroutine will see this change too
	}
}

func (s *Schedule) loop() {
	timer := time.NewTimer(tick)
	defer timer.Stop()
	for {
		due, sleep, ok := s.nextDue()
		if !ok {
			return
		}
		if len(due) > 0 {
			s.run(due)
			continue
		}
		timer.Reset(sleep)
		select {
		case <-timer.C:
		case <-s.wakeup:
		}
	}
}

// nextDue returns the tasks that are due, or how long to sleep. ok is false if the goroutine must end.
func (s *Schedule) nextDue() (due []*Task, sleep time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	for len(s.moments) > 0 && s.moments[0].due <= s.elapsed {
		m := heap.Pop(&s.moments).(*moment)
		for i, t := range m.tasks {
			t.at = nil
			due = append(due, t)
			m.tasks[i] = nil
		}
		s.waiting -= len(m.tasks)
		m.tasks = m.tasks[:0]
		s.recycle(m)
	}
	if len(due) > 0 {
		return due, 0, true
	}
	if len(s.moments) == 0 {
		if s.idle || s.closed {
			// A later Set starts a new goroutine. It also holds s.mu, so no task is missed.
			s.running = false
			return nil, 0, false
		}
		// Stay for one more tick. Otherwise a lock that is taken again and again would start a goroutine each time.
		s.idle = true
		s.wakeAt = s.elapsed + tick
		return nil, tick, true
	}
	sleep = min(s.moments[0].due-s.elapsed, tick)
	s.wakeAt = s.elapsed + sleep
	return nil, sleep, true
}

// moments is a heap with the earliest first.
type moments []*moment

func (h moments) Len() int           { return len(h) }
func (h moments) Less(i, j int) bool { return h[i].due < h[j].due }
func (h moments) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].pos, h[j].pos = i, j
}

func (h *moments) Push(x any) {
	m := x.(*moment)
	m.pos = len(*h)
	*h = append(*h, m)
}

func (h *moments) Pop() any {
	old := *h
	m := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return m
}
