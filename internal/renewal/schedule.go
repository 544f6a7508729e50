// Package renewal runs things when they are due: one goroutine and one heap for
// any number of tasks. It knows time only.
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

// A Task is due at one instant at most. Its zero value, with Of set, is idle.
type Task struct {
	Of  any           // what the task is about, for the schedule's run function
	due time.Duration // on the schedule's own clock
	pos int           // 1 + index in the heap; 0: idle. Guarded by the schedule's mu.
}

// A Schedule hands tasks that are due to its run function, each once for each
// Set. Its goroutine starts with the first task and ends when none is left.
type Schedule struct {
	clock *clock.Clock
	run   func(due []*Task)
	wg    sync.WaitGroup

	mu      sync.Mutex // guards the following fields and every task's due and pos
	tasks   tasks
	base    clock.Instant // when the clock was looked at first
	slept   time.Duration // suspensions since then
	elapsed time.Duration // of the schedule's own clock, at the last look
	running bool
	closed  bool
	kick    chan struct{} // cap 1: an earlier task has come, or the schedule closes
}

// New returns a schedule without tasks. run is called on the schedule's
// goroutine, one call at a time, and must not block: whatever is due
// meanwhile waits for it.
func New(c *clock.Clock, run func(due []*Task)) *Schedule {
	return &Schedule{clock: c, run: run, kick: make(chan struct{}, 1)}
}

// Set makes t due at the given instant and at no other.
func (s *Schedule) Set(t *Task, due clock.Instant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	now := s.look()
	left := due.Time().Sub(now.Time())
	if less := now.Until(due); left-less > tick {
		left = less // a suspension came after due was made
	}
	t.due = s.elapsed + left
	if t.pos == 0 {
		heap.Push(&s.tasks, t)
	} else {
		heap.Fix(&s.tasks, t.pos-1)
	}
	if !s.running {
		s.running = true
		s.wg.Go(s.loop)
	} else if t.pos == 1 {
		s.wake()
	}
}

// look moves the schedule's own clock: the monotonic one and all suspensions of
// more than a tick. A suspension parts the two clocks of an instant, and instants
// from before and after it have no order of their own; on this one number they
// do. It needs s.mu.
func (s *Schedule) look() clock.Instant {
	now := s.clock.Now()
	if s.base.IsZero() {
		s.base = now
	}
	mono := now.Time().Sub(s.base.Time())
	if slept := now.Sub(s.base) - mono; slept > s.slept+tick {
		s.slept = slept
	}
	s.elapsed = max(s.elapsed, mono+s.slept)
	return now
}

// Drop makes t idle. A run that has been handed t already may still be going on.
func (s *Schedule) Drop(t *Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.pos > 0 {
		heap.Remove(&s.tasks, t.pos-1)
	}
	if len(s.tasks) == 0 && s.running {
		s.wake()
	}
}

// Len returns how many tasks are waiting for their time.
func (s *Schedule) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.tasks)
}

// Close drops every task and returns when the goroutine has ended.
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

// wake needs s.mu.
func (s *Schedule) wake() {
	select {
	case s.kick <- struct{}{}:
	default: // a wake-up is pending already, and will see this change too
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

// take returns the tasks that are due, or else how long to sleep; not ok when
// the goroutine's work is done.
func (s *Schedule) take() (due []*Task, sleep time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.look()
	for len(s.tasks) > 0 && s.tasks[0].due <= s.elapsed {
		due = append(due, heap.Pop(&s.tasks).(*Task))
	}
	if len(due) > 0 {
		return due, 0, true
	}
	if len(s.tasks) == 0 {
		// Set starts a new goroutine, with s.mu held as here: none is missed.
		s.running = false
		return nil, 0, false
	}
	return nil, min(s.tasks[0].due-s.elapsed, tick), true
}

// tasks is a heap, the earliest first.
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
