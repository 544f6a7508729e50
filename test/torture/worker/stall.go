package worker

import (
	"fmt"
	"time"

	"github.com/relock-go/relock/test/torture/history"
)

// watchStalls notes when this process did not run for a while, until over is
// closed: the machine was busy, or somebody stopped it.
func (w *worker) watchStalls(over <-chan struct{}) {
	again := time.NewTicker(history.StallsAfter / 5)
	defer again.Stop()
	for last := history.Now(); ; {
		select {
		case <-again.C:
		case <-over:
			return
		}
		now := history.Now()
		if now-last > int64(history.StallsAfter) {
			w.out.Add(history.Event{
				T: last, Worker: w.N, What: history.Fault, Fault: history.Stall, On: fmt.Sprintf("worker %d", w.N), Until: now,
			})
		}
		last = now
	}
}
