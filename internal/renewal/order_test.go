package renewal_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/renewal"
	"github.com/relock-go/relock/internal/virtual"
)

// A suspension moves the two clocks of an instant apart, so instants from before and after it have no common order:
// "early" is before "later" on one clock and after it on the other. In a heap of such instants "early" stood behind
// "later", and ran ten minutes late. Fails unless the schedule orders its tasks on one clock of its own.
func TestTasksFromBeforeAndAfterASuspensionRunInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asleep := make(chan time.Duration, 1)
		asleep <- 0
		base := time.Now()
		c := clock.New(time.Now, func() time.Duration { d := <-asleep; asleep <- d; return time.Since(base) + d })
		suspend := func(d time.Duration) { asleep <- d + <-asleep }
		ran := make(chan string, 3)
		at := make(chan time.Duration, 3)
		s := renewal.New(c, func(due []*renewal.Task) {
			for _, task := range due {
				ran <- task.Of.(string)
				at <- time.Since(base)
			}
		})
		defer s.Close()
		first, early, later := &renewal.Task{Of: "first"}, &renewal.Task{Of: "early"}, &renewal.Task{Of: "later"}
		s.Set(first, c.Now().Add(10*time.Second))
		s.Set(early, c.Now().Add(8000*time.Second))
		virtual.Sleep(time.Second)
		suspend(time.Hour)
		s.Set(later, c.Now().Add(5000*time.Second))
		virtual.Sleep(3 * time.Hour)
		for _, want := range []struct {
			task  string
			until time.Duration
		}{
			{"first", 2 * time.Second},
			{"early", 4401 * time.Second}, // 8000 s minus the hour
			{"later", 5002 * time.Second},
		} {
			if task, when := <-ran, <-at; task != want.task || when > want.until {
				t.Errorf("%q ran after %v, want %q after at most %v", task, when, want.task, want.until)
			}
		}
	})
}
