//go:build unix

package main

import "testing"

func TestFlagsStandInAnyOrder(t *testing.T) {
	w := newWorld(t)
	for _, args := range [][]string{
		{"run", "-wait", "5", "x", "echo", "-n", "ran"},
		{"run", "x", "-wait", "5", "echo", "-n", "ran"},
		{"run", "x", "-wait=.5", "--", "echo", "-n", "ran"},
		{"-redis", w.url, "run", "-ttl", "30", "x", "-owner", "--", "echo", "-n", "ran"},
		{"-prefix=relock", "-q", "run", "x", "echo", "-n", "ran"},
	} {
		if status, out, complaint := w.relock(args...); status != 0 || out != "ran" || complaint != "" {
			t.Errorf("relock %q: status %d, %q, complaint %q", args, status, out, complaint)
		}
	}
	h := w.hold("x")
	if status, out, _ := w.relock("unlock", "x", "-force"); status != 0 || out == "" {
		t.Errorf("unlock x -force: status %d, %q", status, out)
	}
	<-h.Lost()
}
