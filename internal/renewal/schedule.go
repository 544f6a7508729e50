// Package renewal runs tasks when they are due: one goroutine and one heap serve any number of tasks. It
// knows only time.
package renewal

import (
	"container/heap"
	"sync"
	"time"

	"github.com/relock-go/relock/internal/clock"
)

// tick bounds how long the schedule sleeps. Go's timers stand still while the
// machine is suspended; the tick is how soon after that a deadline is noticed.
const tick = 50 * time.Millisecond

// A Task is due at one instant or is idle. Its zero value, with Of set, is idle.
type Task struct {
	Of any // what the task is about, for the schedule's run function

	// Guarded by the schedule's mu:

	at  *moment // when it is due; nil: idle
	pos int     // index in the moment's tasks
}

// A moment is everything that is due at one time. Often that is many renewals, which then share one place in
// the heap.
type moment struct {
	due   time.Duration // on the schedule's own clock
	tasks []*Task
	pos   int // index in the heap
}

// A Schedule hands tasks that are due to its run function, each once for each
// Set. Its goroutine starts with the first task, and ends a tick after none is left.
type Schedule struct {
	clock *clock.Clock
	run   func(due []*Task)
	wg    sync.WaitGroup

	mu      sync.Mutex // guards the following fields and every task's at and pos
	moments moments
	byDue   map[time.Duration]*moment
	spare   []*moment
	waiting int           // tasks
	base    clock.Instant // the clock at the first look
	slept   time.Duration // sum of the suspensions since then
	elapsed time.Duration // the schedule's own clock at the last look
	wakeAt  time.Duration // on that clock: a task that is due later need not wake the goroutine
	running bool
	idle    bool // the goroutine has found nothing to wait for once
	closed  bool
	kick    chan struct{} // capacity one: an earlier task has come, or the schedule closes
}

// New returns a schedule without tasks. run is called on the schedule's goroutine, one call at a time. It
// must not block, because tasks that become due in the meantime wait for it.
func New(c *clock.Clock, run func(due []*Task)) *Schedule {
	return &Schedule{clock: c, run: run, byDue: make(map[time.Duration]*moment), kick: make(chan struct{}, 1)}
}

// Set makes t due at the given instant and at no other.
func (s *Schedule) Set(t *Task, due clock.Instant) { s.SetAbout(t, due, 0) }

// SetAbout is Set for a task that may run earlier, by less than grain. Tasks that are due at about the same
// time then run together, at little more than the cost of one.
func (s *Schedule) SetAbout(t *Task, due clock.Instant, grain time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	now := s.look()
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

// insert adds t to the moment of that time. It needs s.mu.
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
		s.drop(m)
	}
}

// drop keeps a small moment that has left the heap, so that it can be used again. It needs s.mu.
func (s *Schedule) drop(m *moment) {
	delete(s.byDue, m.due)
	if len(s.spare) < 16 && cap(m.tasks) <= 64 {
		s.spare = append(s.spare, m)
	}
}

// look advances the schedule's own clock: the monotonic clock plus all suspensions of more than a tick. A
// suspension moves the two clocks of an instant apart, so instants from before and after it have no common
// order. This single number orders them. look needs s.mu.
func (s *Schedule) look() clock.Instant {
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

// Close drops every task and returns when the goroutine has ended.
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
	case s.kick <- struct{}{}:
	default: // a wake-up is already pending and will see this change too
	}
}

func (s *Schedule) loop() {
	timer := time.NewTimer(tick)
	defer timer.Stop()
	for {
		due, sleep, ok := s.take()
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
		case <-s.kick:
		}
	}
}

// take returns the tasks that are due, or how long to sleep. ok is false if the goroutine must end.
func (s *Schedule) take() (due []*Task, sleep time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.look()
	for len(s.moments) > 0 && s.moments[0].due <= s.elapsed {
		m := heap.Pop(&s.moments).(*moment)
		for i, t := range m.tasks {
			t.at = nil
			due = append(due, t)
			m.tasks[i] = nil
		}
		s.waiting -= len(m.tasks)
		m.tasks = m.tasks[:0]
		s.drop(m)
	}
	if len(due) > 0 {
		return due, 0, true
	}
	if len(s.moments) == 0 {
		if s.idle || s.closed {
			// Set starts a new goroutine. It holds s.mu too, so no task is missed.
			s.running = false
			return nil, 0, false
		}
		// Stay for one more tick: a lock that is taken again and again would start a goroutine each time.
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
