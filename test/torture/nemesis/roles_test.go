package nemesis_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/relock-go/relock/test/torture/history"
	"github.com/relock-go/relock/test/torture/nemesis"
	"github.com/relock-go/relock/test/torture/server"
)

// A release that such a failover lost was once taken for a token given twice: whoever
// looked for failovers went home with the last fault, and the locks went on.
func TestFailoverAfterTheLastFaultIsNoted(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir := t.TempDir()
	clock, err := server.NewClock(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer clock.Close()
	d, err := server.Deploy(ctx, server.Sentinel, "sentinel0", dir, clock)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	out, err := history.Create(filepath.Join(dir, "rig.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	site := &nemesis.Site{Deployment: d, Clock: clock, Out: out}
	stop := site.Watch()
	defer stop()
	site.Run(ctx, nil, 0)
	const asked = 2
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range 3 { // who is promoted has to have been seen following
		if err := d.FailOver(ctx, asked); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			if counts, _ := site.Counts(); counts[history.Failover] > 0 {
				return
			}
			<-tick.C
		}
	}
	t.Fatal("no failover was noted")
}
