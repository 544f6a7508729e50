//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
)

// A run inside of a run, of the same name and without an end to its wait, waited for itself.
func TestRunInsideARunIsToldThatItWouldWaitForEver(t *testing.T) {
	w := newWorld(t)
	nested := func(flags string, inner ...string) (int, string, string) {
		args := append(append([]string{"run"}, strings.Fields(flags)...), "x", "--", self(t), "run", "x")
		return w.relockEnv([]string{beRelock}, append(append(args, inner...), "echo", "started")...)
	}
	for _, inner := range [][]string{{}, {"-owner", "other"}} {
		if status, out, complaint := nested("", inner...); status != exitUsage || out != "" || !strings.Contains(complaint, "held by an outer run") {
			t.Errorf("%q: status %d, %q, complaint %q", inner, status, out, complaint)
		}
	}
	if status, out, _ := nested("-write", "-read"); status != exitUsage || out != "" {
		t.Errorf("a reader inside of a writer: status %d, %q", status, out)
	}
	if status, out, complaint := nested("-read", "-read"); status != 0 || out != "started\n" {
		t.Errorf("a reader inside of a reader: status %d, %q, complaint %q", status, out, complaint)
	}
	if status, out, complaint := nested("-owner me", "-owner", "me"); status != 0 || out != "started\n" {
		t.Errorf("one owner: status %d, %q, complaint %q", status, out, complaint)
	}
	// What an outer run said once is no hold.
	if status, out, complaint := w.relockEnv([]string{"RELOCK_NAME=x", "RELOCK_TOKEN=5"}, "run", "x", "echo", "started"); status != 0 || out != "started\n" {
		t.Errorf("a free lock: status %d, %q, complaint %q", status, out, complaint)
	}
}

// nested runs each of these within the one before, of what stands between commas, and echo in the last.
func (w *world) nested(runs ...string) (status int, out string) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), tooLong)
	defer cancel()
	var args []string
	for i, of := range runs {
		if i > 0 {
			args = append(args, self(w.T))
		}
		args = append(append(args, "run"), append(strings.Split(of, ","), "--")...)
	}
	var stdout, stderr strings.Builder
	status = run(ctx, append(args, "echo", "started"), w.env(beRelock), strings.NewReader(""), &stdout, &stderr)
	return status, stdout.String()
}

// Fails when a run knows of the innermost of the runs alone that it is a part of: it waits for ever then.
func TestRunInsideOfSeveralIsRefusedTheNameOfEach(t *testing.T) {
	w := newWorld(t)
	for want, all := range map[string][][]string{
		"":          {{"a", "b", "a"}, {"a: b", "c d:", "e", "a: b"}, {"-owner,me,a", "b", "-owner,you,a"}, {"a", "-owner,me,b", "a"}, {"-read,a", "b", "-write,a"}},
		"started\n": {{"a", "b", "c"}, {"-owner,me,a", "b", "-owner,me,a", "-owner,me,a"}, {"-read,a", "b", "-read,a"}},
	} {
		for _, runs := range all {
			if status, out := w.nested(runs...); out != want || (status == exitUsage) != (want == "") {
				t.Fatalf("%q: status %d, output %q, want %q", runs, status, out, want)
			}
		}
	}
}

// A run that needs a permit which its own outer runs have waited for their end.
func TestRunInsideOfRunsThatHaveAllPermitsIsRefused(t *testing.T) {
	w := newWorld(t)
	for want, all := range map[int][][]string{
		exitUsage: {
			{"-n,1,x", "-n,1,x"},
			{"-n,2,x", "b", "-n,2,x", "-n,2,x"},
			{"-n,2,x", "-n,1,x"},
			{"-n,1,-owner,me,x", "-n,1,-owner,you,x"},
			{"-n,2,-owner,me,x", "-n,2,x", "-n,2,-owner,you,x"},
		},
		0: {
			{"-n,2,x", "-n,2,x"},
			{"-n,1,x", "-n,2,x"},
			{"-n,3,x", "-n,3,x", "b", "-n,3,x"},
			{"-n,1,-owner,me,x", "-n,1,-owner,me,x"},
			{"-n,2,-owner,me,x", "-n,2,x", "-n,1,-owner,me,x"},
			{"-n,2,-owner,me,x", "-n,2,-owner,me,x", "-n,2,x"},
		},
		exitNotAcquired: {{"-n,1,x", "-n,1,-wait,0,x"}},
		exitUnavailable: {{"x", "-n,1,x"}}, // another kind of lock
	} {
		for _, runs := range all {
			if status, out := w.nested(runs...); status != want || (out == "started\n") != (want == 0) {
				t.Fatalf("%q: status %d, output %q, want %d", runs, status, out, want)
			}
		}
	}
	w.wantFree("x")
}

// Others than the outer runs end by themselves: their permits are waited for.
func TestRunInsideOfARunWaitsForAPermitOfAnother(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithTimeout(t.Context(), tooLong)
	defer cancel()
	outer, err := w.locks.NewSemaphore("x", 2).Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	other, err := w.locks.NewSemaphore("x", 2, relock.Owner("other")).Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	inner := func(flags ...string) string {
		var out strings.Builder
		args := slices.Concat([]string{"run"}, flags, []string{"x", "echo", "started"})
		return fmt.Sprint(run(ctx, args, w.env(outerEnv("x", outer)...), strings.NewReader(""), &out, &out), " ", out.String())
	}
	if got := inner("-n", "1", "-owner", "other"); got != "0 started\n" {
		t.Errorf("status and output %q of one that needs no permit", got)
	}
	ended := make(chan string, 1)
	go func() { ended <- inner("-n", "2") }()
	for w.info("x").Waiters != 1 {
		select {
		case got := <-ended:
			t.Fatalf("status and output %q, want that it waits", got)
		default:
		}
	}
	if err := other.Release(); err != nil {
		t.Error(err)
	}
	if got := <-ended; got != "0 started\n" {
		t.Errorf("status and output %q, want that it has run", got)
	}
	if err := outer.Release(); err != nil {
		t.Error(err)
	}
}

// outerEnv is what a run has in its environment that is a part of the one with that hold.
func outerEnv(name string, h *relock.Hold) []string {
	return []string{"RELOCK_NAME=" + name, fmt.Sprint("RELOCK_TOKEN=", h.Token())}
}

// A reader inside of a reader waited behind a writer, who waited for the outer one.
func TestReaderInsideOfAReaderIsRefusedWhereAWriterWaits(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithTimeout(t.Context(), tooLong)
	defer cancel()
	lock := w.locks.NewRWLock("x", relock.Owner("me"))
	outer, err := lock.RLocker().Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	inner := func(want int, flags ...string) {
		t.Helper()
		var out strings.Builder
		args := slices.Concat([]string{"run", "-read"}, flags, []string{"x", "echo", "started"})
		status := run(ctx, args, w.env(outerEnv("x", outer)...), strings.NewReader(""), &out, &out)
		if status != want || strings.Contains(out.String(), "started") != (want == 0) || want == exitUsage && !strings.Contains(out.String(), "held by an outer run") {
			t.Errorf("%q: status %d, %q, want %d", flags, status, out.String(), want)
		}
	}
	inner(0)
	waiting, giveUp := context.WithCancel(ctx)
	gone := make(chan error, 1)
	go func() { gone <- w.locks.NewRWLock("x", relock.Owner("writer")).Lock(waiting) }()
	w.waitForQueue("x", 1)
	inner(exitUsage)
	inner(exitUsage, "-owner", "you")
	inner(0, "-owner", "me")
	inner(exitNotAcquired, "-wait", "0")
	if n := w.info("x").Waiters; n != 1 {
		t.Errorf("%d wait, want the writer alone", n)
	}
	giveUp()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	w.waitForQueue("x", 0)
	inner(0)
	if err := outer.Release(); err != nil {
		t.Error(err)
	}
}

// Fails when the outer run of a relock that keeps no list of runs is not known.
func TestRunInsideOfAnOlderRelocksRunIsRefusedItsName(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithTimeout(t.Context(), tooLong)
	defer cancel()
	h := w.hold("x")
	var out strings.Builder
	env := w.env("RELOCK_RUNS=5:y nonsense", "RELOCK_NAME=x", fmt.Sprint("RELOCK_TOKEN=", h.Token()))
	if status := run(ctx, []string{"run", "x", "echo", "started"}, env, strings.NewReader(""), &out, &out); status != exitUsage {
		t.Errorf("status %d, %q, want that it is refused", status, out.String())
	}
	if err := h.Release(); err != nil {
		t.Error(err)
	}
}

// There is no waiting for this: it was told like a Redis that is away, of which the next try may know nothing.
func TestOwnerThatReadsAndIsToWriteExits64(t *testing.T) {
	w := newWorld(t)
	for _, verb := range [][]string{{"run", "x", "echo", "started"}, {"hold", "-for", "0", "x"}} {
		for _, wait := range [][]string{{}, {"-wait", "0"}, {"-wait", "1m"}} {
			outer := []string{"run", "-read", "-owner", "me", "x", "--", self(t)}
			inner := slices.Insert(slices.Clone(verb), 1, append(wait, "-write", "-owner", "me")...)
			status, out, complaint := w.relockEnv([]string{beRelock}, append(outer, inner...)...)
			if status != exitUsage || out != "" || !strings.Contains(complaint, "a read hold cannot become a write hold") {
				t.Errorf("%q: status %d, %q, complaint %q", inner, status, out, complaint)
			}
		}
	}
	w.wantFree("x")
}

// bothWrite is what relock and its command write to at the same time.
type bothWrite struct {
	mu sync.Mutex
	strings.Builder
}

func (s *bothWrite) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Builder.Write(b)
}

// There were two lines for one loss, the second when a Redis that is gone had been waited for.
func TestLossIsToldOnceAndAtOnce(t *testing.T) {
	for name, flags := range map[string][]string{"run": {"-ttl", "1"}, "run -every": {"-ttl", "1", "-every", "8000h"}} {
		t.Run(name, func(t *testing.T) { lossIsToldOnceAndAtOnce(t, flags) })
	}
}

func lossIsToldOnceAndAtOnce(t *testing.T, flags []string) {
	server := redistest.Real(t)
	w := worldAt(t, "redis://"+server.Addr()+"/?read_timeout=1h&dial_timeout=1h") // what waits for it hangs
	was := farewell
	farewell = time.Hour
	defer func() { farewell = was }()
	type end struct {
		status    int
		complaint string
	}
	ended := make(chan end, 1)
	go func() {
		complaint := &bothWrite{}
		status := run(t.Context(), slices.Concat([]string{"run"}, flags, []string{"x", "--", "sleep", "60"}), w.env(), strings.NewReader(""), complaint, complaint)
		ended <- end{status, complaint.String()}
	}()
	for held := ""; !strings.Contains(held, "is held by") && t.Context().Err() == nil; {
		_, held, _ = w.relock("info", "x")
	}
	server.Pause()
	defer server.Resume()
	select {
	case e := <-ended:
		if e.status != exitLost || strings.Count(e.complaint, "\n") != 1 || !strings.HasPrefix(e.complaint, `relock: lost the lock "x", stopping the command: `) {
			t.Errorf("status %d, complaint %q, want one line", e.status, e.complaint)
		}
	case <-time.After(20 * time.Second): // a release of an interval would be waited for for half a minute
		t.Fatal("it waits for a Redis that does not answer, to say goodbye")
	}
}
