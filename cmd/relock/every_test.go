//go:build unix

package main

import (
	"fmt"
	"strings"
	"testing"
)

// The interval is so long that none begins while the test runs.
func TestRunEveryRunsOnceInAnInterval(t *testing.T) {
	w := newWorld(t)
	run := func(command string) (status int, out string) {
		t.Helper()
		status, out, complaint := w.relock("run", "-every", "8000h", "x", "--", "sh", "-c", command)
		if skipped := strings.Contains(complaint, "skipped "); skipped != (out == "") || !skipped && complaint != "" {
			t.Errorf("%q: %q, complaint %q", command, out, complaint)
		}
		return status, out
	}
	for _, row := range []struct {
		command string
		status  int
		out     string
	}{
		{"echo later; exit 75", 75, "later\n"},
		{`echo "$RELOCK_NAME"; exit 3`, 3, "x\n"},
		{"echo again", 0, ""},
		{"echo again", 0, ""},
	} {
		if status, out := run(row.command); status != row.status || out != row.out {
			t.Errorf("%q: status %d, %q, want %d, %q", row.command, status, out, row.status, row.out)
		}
	}
	status, out, _ := w.relock("info", "x")
	if status != 0 || !strings.HasPrefix(out, "x is taken for another ") || !strings.Contains(out, "kind: plain\n") {
		t.Errorf("info: status %d, %q", status, out)
	}
	if status, out, _ := w.relock("unlock", "-force", "x"); status != 0 || !strings.HasSuffix(out, ", and is now free\n") {
		t.Errorf("unlock: status %d, %q", status, out)
	}
	if status, out := run("echo once more"); status != 0 || out != "once more\n" {
		t.Errorf("after unlock -force: status %d, %q", status, out)
	}
}

func TestRunEveryThatCannotStartIsLeftToTheNext(t *testing.T) {
	w := newWorld(t)
	if status, _, _ := w.relock("run", "-every", "8000h", "x", "--", "./no-such-file"); status != exitNotFound {
		t.Errorf("status %d, want %d", status, exitNotFound)
	}
	if status, out, _ := w.relock("run", "-every", "8000h", "x", "--", "echo", "runs"); status != 0 || out != "runs\n" {
		t.Errorf("status %d, %q", status, out)
	}
}

func TestRunAtLeastKeepsTheNameTaken(t *testing.T) {
	w := newWorld(t)
	if status, out, complaint := w.relock("run", "-at-least", "1h", "x", "--", "echo", "first"); status != 0 || out != "first\n" {
		t.Errorf("status %d, %q, complaint %q", status, out, complaint)
	}
	if status, out, _ := w.relock("run", "-wait", "0", "x", "--", "echo", "second"); status != exitNotAcquired || out != "" {
		t.Errorf("the second: status %d, %q, want %d", status, out, exitNotAcquired)
	}
	if info := w.info("x"); len(info.Holders) > 0 || info.Resting == 0 {
		t.Errorf("redis has %+v, want a name that rests", info)
	}
}

func TestRunEveryAndAtLeastRefuseWhatDoesNotGoWithThem(t *testing.T) {
	w := newWorld(t)
	for _, flags := range [][]string{
		{"-every", "1m", "-wait", "0"},
		{"-every", "1m", "-read"},
		{"-every", "1m", "-write"},
		{"-every", "1m", "-owner", "me"},
		{"-every", "1m", "-at-least", "1m"},
		{"-every", "-1m"},
		{"-every", "soon"},
		{"-at-least", "-1s"},
		{"-at-least", "1s", "-read"},
		{"-at-least", "1s", "-n", "2"},
	} { // refused before a Redis is asked, and here there is none
		status, out, complaint := w.relock(append(append([]string{"run", "-redis", "redis://127.0.0.1:1"}, flags...), "x", "--", "echo", "started")...)
		if status != exitUsage || out != "" || complaint == "" {
			t.Errorf("%q: status %d, output %q, complaint %q, want %d", flags, status, out, complaint, exitUsage)
		}
	}
	if info := w.info("x"); info.Kind != "" {
		t.Errorf("redis has %+v, want nothing", info)
	}
}

// A shell ends with 127 if the last of its commands is not installed: what came before it has run.
func TestRunEveryOfACommandThatEndsAsIfItWereNotFoundHasRun(t *testing.T) {
	w := newWorld(t)
	for _, ends := range []int{exitNotExecutable, exitNotFound} {
		name := fmt.Sprint("x", ends)
		if status, out, _ := w.relock("run", "-every", "8000h", name, "--", "sh", "-c", fmt.Sprintf("echo ran; exit %d", ends)); status != ends || out != "ran\n" {
			t.Errorf("status %d, %q, want %d", status, out, ends)
		}
		if status, out, _ := w.relock("run", "-every", "8000h", name, "--", "echo", "again"); status != 0 || out != "" {
			t.Errorf("it runs again in its interval: status %d, %q", status, out)
		}
	}
}
