//go:build unix

package main

import (
	"syscall"
	"testing"
)

func TestSoManyRunAtATime(t *testing.T) {
	w := newWorld(t)
	one := w.start("run", "-n", "2", "x", "--", "sh", "-c", "echo started; sleep 30")
	one.want("started")
	try := func(n string) int {
		status, _, _ := w.relock("run", "-n", n, "-wait", "0", "x", "--", "true")
		return status
	}
	if got := try("2"); got != 0 {
		t.Errorf("a second run of two: status %d", got)
	}
	if got := try("1"); got != exitNotAcquired {
		t.Errorf("a second run of one: status %d, want %d", got, exitNotAcquired)
	}
	two := w.start("run", "-n", "2", "x", "--", "sh", "-c", "echo started; sleep 30")
	two.want("started")
	if got := try("2"); got != exitNotAcquired {
		t.Errorf("a third run of two: status %d, want %d", got, exitNotAcquired)
	}
	if got := try("3"); got != 0 {
		t.Errorf("a third run of three: status %d", got)
	}
	for _, p := range []*process{one, two} {
		p.signal(syscall.SIGTERM)
		p.wantStatus(exitSignal + 15)
	}
	w.wantFree("x")
}
