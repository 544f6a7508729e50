package renewal_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/renewal"
	"github.com/relock-go/relock/internal/virtual"
)

// record returns a schedule that records which tasks it runs, and when.
func record() (s *renewal.Schedule, ran func() []string) {
	start := time.Now()
	got := make(chan string, 100)
	s = renewal.New(new(clock.Clock), func(due []*renewal.Task) {
		for _, task := range due {
			got <- task.Of.(string) + " " + time.Since(start).String()
		}
	})
	return s, func() (all []string) {
		for {
			select {
			case line := <-got:
				all = append(all, line)
			default:
				return all
			}
		}
	}
}

func in(d time.Duration) clock.Instant { return new(clock.Clock).Now().Add(d) }

func TestTasksRunOnceInOrderWhenTheyAreDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ran := record()
		defer s.Close()
		s.Set(&renewal.Task{Of: "late"}, in(3*time.Second))
		s.Set(&renewal.Task{Of: "early"}, in(time.Second))
		s.Set(&renewal.Task{Of: "middle"}, in(2*time.Second))
		virtual.Sleep(time.Minute)
		want := []string{"early 1s", "middle 2s", "late 3s"}
		if got := ran(); !slices.Equal(got, want) {
			t.Errorf("ran %v, want %v", got, want)
		}
	})
}

func TestSetMovesATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ran := record()
		defer s.Close()
		sooner, later := &renewal.Task{Of: "sooner"}, &renewal.Task{Of: "later"}
		s.Set(sooner, in(time.Hour))
		s.Set(later, in(time.Second))
		s.Set(sooner, in(2*time.Second))
		s.Set(later, in(4*time.Second))
		virtual.Sleep(2 * time.Hour)
		want := []string{"sooner 2s", "later 4s"}
		if got := ran(); !slices.Equal(got, want) {
			t.Errorf("ran %v, want %v", got, want)
		}
	})
}

func TestADroppedTaskDoesNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ran := record()
		defer s.Close()
		gone, stays := &renewal.Task{Of: "gone"}, &renewal.Task{Of: "stays"}
		s.Set(gone, in(time.Second))
		s.Set(stays, in(2*time.Second))
		s.Drop(gone)
		s.Drop(gone) // already idle
		virtual.Sleep(time.Minute)
		if got, want := ran(), []string{"stays 2s"}; !slices.Equal(got, want) {
			t.Errorf("ran %v, want %v", got, want)
		}
	})
}

// The deadlock detection of the bubble fails the test if the goroutine does not end.
func TestTheGoroutineEndsWithTheLastTaskAndStartsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ran := record()
		s.Set(&renewal.Task{Of: "one"}, in(time.Second))
		virtual.Sleep(time.Minute)
		s.Set(&renewal.Task{Of: "two"}, in(time.Second))
		virtual.Sleep(time.Minute)
		if got, want := ran(), []string{"one 1s", "two 1m1s"}; !slices.Equal(got, want) {
			t.Errorf("ran %v, want %v", got, want)
		}
	})
}

func TestCloseDropsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ran := record()
		s.Set(&renewal.Task{Of: "one"}, in(time.Second))
		s.Close()
		s.Set(&renewal.Task{Of: "two"}, in(time.Second))
		s.Close()
		virtual.Sleep(time.Minute)
		if got := ran(); len(got) != 0 {
			t.Errorf("ran %v, want nothing", got)
		}
	})
}

func TestRunMaySetTheTaskItWasHanded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *renewal.Schedule
		runs := 0
		s = renewal.New(new(clock.Clock), func(due []*renewal.Task) {
			runs++
			s.Set(due[0], in(10*time.Second))
		})
		s.Set(&renewal.Task{}, in(10*time.Second))
		virtual.Sleep(time.Hour + time.Second)
		s.Close()
		if runs != 360 {
			t.Errorf("ran %d times in an hour, want 360", runs)
		}
	})
}

// While a machine is suspended, its timers stand still and its boot clock goes on.
func TestATaskThatBecameDueInASuspensionRunsWithinATick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asleep := make(chan time.Duration, 1)
		asleep <- 0
		boot := func() time.Duration { d := <-asleep; asleep <- d; return d }
		c := clock.New(time.Now, boot)
		ran := make(chan time.Time, 1)
		s := renewal.New(c, func([]*renewal.Task) { ran <- time.Now() })
		defer s.Close()
		s.Set(&renewal.Task{}, c.Now().Add(time.Hour))
		virtual.Sleep(time.Second)
		<-asleep
		asleep <- 2 * time.Hour
		resumed := time.Now()
		if late := (<-ran).Sub(resumed); late > 100*time.Millisecond {
			t.Errorf("ran %v after the machine went on, want at most 100ms", late)
		}
	})
}

func BenchmarkSetAndRunFarFromDue(b *testing.B) {
	b.ReportAllocs()
	s := renewal.New(new(clock.Clock), func([]*renewal.Task) {})
	defer s.Close()
	tasks := make([]renewal.Task, 10_000)
	due := in(time.Hour)
	i := 0
	for b.Loop() {
		s.Set(&tasks[i%len(tasks)], due.Add(time.Duration(i)))
		i++
	}
}
