package redistest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// AwaitStopped returns when every thread of a process has obeyed SIGSTOP. That
// takes a moment on a busy machine, in which it may do what it is told next.
func AwaitStopped(t testing.TB, pid int) {
	t.Helper()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for began := time.Now(); !stopped(pid); <-again.C {
		if time.Since(began) > 10*time.Second {
			t.Fatalf("redistest: process %d does not stop", pid)
		}
	}
}

func stopped(pid int) bool {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, file := range files {
		stat, err := os.ReadFile(file) // 'tid (name) state …'
		if _, state, _ := bytes.Cut(stat, []byte(") ")); err == nil && !bytes.HasPrefix(state, []byte("T")) {
			return false
		}
	}
	return true
}
