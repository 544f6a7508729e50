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

// most is how many tasks are taken from the heap at once. After a suspension all are due, and Set waits for that.
const most = 1000

// A Task is due at one instant or is idle. Its zero value, with Of set, is idle.
type Task struct {
	Of any // what the task is about, for the schedule's run function

	// Guarded by the schedule's mu:

	due time.Duration // on the schedule's own clock
	pos int           // index in the heap, plus one; 0: idle
}

// A Schedule passes tasks that are due to its run function. A task is idle after that, until it is set again. The
// goroutine starts with the first task, and ends within a tick after the last.
type Schedule struct {
	clock *clock.Clock
	run   func(due []*Task)
	wg    sync.WaitGroup

	mu      sync.Mutex    // guards the following fields and every task's due and pos
	tasks   tasks         // that wait for their time
	base    clock.Instant // when advance was first called
	slept   time.Duration // sum of the suspensions since base
	elapsed time.Duration // the schedule's own clock, set by advance
	wakeAt  time.Duration // when the goroutine wakes up, on that clock; a task due later need not wake it
	running bool          // the goroutine runs
	closed  bool
	wakeup  chan struct{} // capacity one: a task is due before wakeAt, or the schedule closes
}

// New returns a schedule without tasks. run is called on the schedule's goroutine, one call at a time. It
// must not block, because tasks that become due in the meantime wait for it.
func New(c *clock.Clock, run func(due []*Task)) *Schedule {
	return &Schedule{clock: c, run: run, wakeup: make(chan struct{}, 1)}
}

// Set makes t due at the given instant, and no longer at the one set before.
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
	if t.due = at; t.pos == 0 {
		heap.Push(&s.tasks, t)
	} else {
		heap.Fix(&s.tasks, t.pos-1)
	}
	if !s.running {
		s.running = true
		s.wakeAt = 0
		s.wg.Go(s.loop)
	} else if at < s.wakeAt {
		s.wake()
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
	if t.pos > 0 {
		heap.Remove(&s.tasks, t.pos-1)
	}
}

// Close drops every task and returns when the goroutine has ended. After it Set does nothing. run must not call it.
func (s *Schedule) Close() {
	s.mu.Lock()
	s.closed = true
	for _, t := range s.tasks {
		t.pos = 0
	}
	s.tasks = nil
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

// nextDue returns tasks that are due, or how long to sleep. ok is false if the goroutine must end.
func (s *Schedule) nextDue() (due []*Task, sleep time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	for len(s.tasks) > 0 && s.tasks[0].due <= s.elapsed && len(due) < most {
		due = append(due, heap.Pop(&s.tasks).(*Task))
	}
	if len(due) > 0 {
		return due, 0, true
	}
	if len(s.tasks) == 0 {
		s.running = false // a later Set starts a new goroutine; it also holds s.mu, so no task is missed
		return nil, 0, false
	}
	sleep = min(s.tasks[0].due-s.elapsed, tick)
	s.wakeAt = s.elapsed + sleep
	return nil, sleep, true
}

// tasks is a heap with the earliest first.
type tasks []*Task

func (h tasks) Len() int           { return len(h) }
func (h tasks) Less(i, j int) bool { return h[i].due < h[j].due }
func (h tasks) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].pos, h[j].pos = i+1, j+1
}

func (h *tasks) Push(x any) {
	t := x.(*Task)
	*h = append(*h, t)
	t.pos = len(*h)
}

func (h *tasks) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	t.pos = 0
	return t
}
