package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// pends reports whether a process has been sent a signal that it has not got yet.
func pends(t *testing.T, pid int, s syscall.Signal) bool {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "\nShdPnd:\t")
	line, _, _ := strings.Cut(after, "\n")
	set, err := strconv.ParseUint(line, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return set&(1<<(s-1)) != 0
}

// Whoever stopped the command wants it to stand still. It gets the signal when it goes on.
func TestASignalToYieldLeavesAStoppedCommandStopped(t *testing.T) {
	w := newWorld(t)
	p := w.start("run", "-yield", "usr1", "x", "--", "sh", "-c", `trap 'echo yields; exit 5' USR1; echo $$; kill -STOP $$; `+naps)
	pid, err := strconv.Atoi(p.next())
	if err != nil {
		t.Fatal(err)
	}
	next := w.start("run", "x", "--", "true")
	again, over := time.NewTicker(50*time.Millisecond), time.After(tooLong)
	defer again.Stop()
	for !pends(t, pid, syscall.SIGUSR1) {
		select {
		case <-again.C:
		case line := <-p.lines:
			t.Fatalf("it goes on, and says %q", line)
		case <-over:
			t.Fatal("it is not signalled")
		}
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	p.want("yields")
	p.wantStatus(5)
	next.wantStatus(0)
}
