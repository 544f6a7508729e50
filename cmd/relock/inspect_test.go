//go:build unix

package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	miniserver "github.com/alicebob/miniredis/v2/server"

	"github.com/relock-go/relock"
)

func TestInfoShowsWhoHolds(t *testing.T) {
	w := newWorld(t)
	if _, out, _ := w.relock("info", "x"); out != "x is free\n0 waiting\n" {
		t.Errorf("info of a free lock: %q", out)
	}
	h, err := w.locks.NewLock("x", relock.Owner("evil\x1b[2J")).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Release() }()
	status, out, _ := w.relock("info", "x")
	if want := fmt.Sprintf(`x is held by "evil\x1b[2J": holds 1, token %d, lease `, h.Token()); status != 0 || !strings.HasPrefix(out, want) {
		t.Errorf("info: status %d, %q, want %q...", status, out, want)
	}
}

// Who holds and who waits is told by host and process, or as -label says; since when, too.
func TestLabelsAreShown(t *testing.T) {
	w := newWorld(t)
	holds := w.start("run", "-label", "nightly report", "x", "--", "sh", "-c", "echo started; exec sleep 60")
	holds.want("started")
	waits := w.start("run", "x", "--", "true")
	w.waitForQueue("x", 1)
	status, out, _ := w.relock("info", "x")
	if line, _, _ := strings.Cut(out, "\n"); status != 0 || !regexp.MustCompile(`, held for \d\S*s by "nightly report"$`).MatchString(line) {
		t.Errorf("info: status %d, %q", status, out)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if _, out, _ = w.relock("waiters", "x"); !strings.Contains(out, `by "`+host+":") {
		t.Errorf("waiters: %q, want one of the host %q", out, host)
	}
	holds.signal(syscall.SIGTERM)
	holds.wantStatus(128 + int(syscall.SIGTERM))
	waits.wantStatus(0)
	if status, _, complaint := w.relock("run", "-label", "", "x", "--", "true"); status != exitUsage || !strings.Contains(complaint, "1 to 128 bytes") {
		t.Errorf("a label of nothing: status %d, %q, want 64, and what is allowed", status, complaint)
	}
}

func TestWaitersAreShownInOrder(t *testing.T) {
	w := newWorld(t)
	if _, out, _ := w.relock("waiters", "x"); out != "nobody waits for x\n" {
		t.Errorf("waiters of a free lock: %q", out)
	}
	h := w.hold("x")
	// Anonymous calls of one process would stand there as one.
	first := w.start("run", "-owner", "first", "x", "--", "true")
	w.waitForQueue("x", 1)
	second := w.start("run", "-owner", "second", "x", "--", "true")
	w.waitForQueue("x", 2)
	status, out, _ := w.relock("waiters", "x")
	lines := strings.Split(out, "\n")
	if status != 0 || len(lines) != 3 || !strings.HasPrefix(lines[0], `1  "first"   lock  for `) || !strings.HasPrefix(lines[1], `2  "second"  lock  for `) {
		t.Errorf("waiters: status %d, %q", status, out)
	}
	if err := h.Release(); err != nil {
		t.Error(err)
	}
	first.wantStatus(0)
	second.wantStatus(0)
}

func TestReadersAndWritersThatWaitAreToldApart(t *testing.T) {
	w := newWorld(t)
	h, err := w.locks.NewRWLock("x", relock.Owner("me")).WLocker().Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	reader := w.start("run", "-read", "-owner", "r", "x", "--", "true")
	w.waitForQueue("x", 1)
	writer := w.start("run", "-write", "-owner", "w", "x", "--", "true")
	w.waitForQueue("x", 2)
	_, out, _ := w.relock("waiters", "x")
	lines := strings.Split(out, "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], `1  "r"  read   for `) || !strings.HasPrefix(lines[1], `2  "w"  write  for `) {
		t.Errorf("waiters: %q", out)
	}
	if _, out, _ = w.relock("info", "x"); !strings.HasPrefix(out, `x is held by "me": writing, `) || !strings.HasSuffix(out, "\nkind: rw\n2 waiting\n") {
		t.Errorf("info: %q", out)
	}
	if err := h.Release(); err != nil {
		t.Error(err)
	}
	reader.wantStatus(0)
	writer.wantStatus(0)
}

// waitForQueue asks until so many wait: Redis tells nobody when one joins.
func (w *world) waitForQueue(name string, n int) {
	w.Helper()
	for w.info(name).Waiters != n {
		if w.Context().Err() != nil {
			w.Fatal("interrupted")
		}
	}
}

func TestForcedUnlockTellsWhatItRemoved(t *testing.T) {
	w := newWorld(t)
	h := w.hold("x")
	status, out, _ := w.relock("unlock", "-force", "x")
	if want := fmt.Sprintf("x: removed %q: holds 1, token %d, lease ", h.Owner(), h.Token()); status != 0 || !strings.HasPrefix(out, want) {
		t.Errorf("unlock: status %d, %q, want %q...", status, out, want)
	}
	<-h.Lost()
	w.wantFree("x")
	if status, out, _ := w.relock("unlock", "-force", "x"); status != 0 || out != "x: there was no holder to remove\n" {
		t.Errorf("unlock of a free lock: status %d, %q", status, out)
	}
}

// The lock passes from one holder to the next before each of the scripts that unlock has
// run. What it says of a holder is then what Redis has told that holder.
func TestForcedUnlockNamesWhomItRemovedThoughTheLockPassesOn(t *testing.T) {
	for before := 1; before <= 4; before++ {
		t.Run(strconv.Itoa(before), func(t *testing.T) { unlockAsTheLockPassesOn(t, int64(before)) })
	}
}

func unlockAsTheLockPassesOn(t *testing.T, before int64) {
	w, m := newWorldOf(t)
	first := w.hold("x")
	var second atomic.Pointer[relock.Hold]
	var scripts atomic.Int64
	scripts.Store(math.MinInt32) // none counts yet
	m.Server().SetPreHook(func(_ *miniserver.Peer, cmd string, _ ...string) bool {
		if strings.HasPrefix(cmd, "EVAL") && scripts.Add(1) == before {
			if err := first.Release(); err != nil {
				t.Error(err)
			}
			second.Store(w.hold("x"))
		}
		return false
	})
	scripts.Store(0)
	status, out, complaint := w.relock("unlock", "-force", "x")
	scripts.Store(math.MinInt32)
	if status != 0 || complaint != "" {
		t.Errorf("status %d, complaint %q", status, complaint)
	}
	for _, h := range []*relock.Hold{first, second.Load()} {
		if h == nil {
			continue // it did not run so many scripts
		}
		named := strings.Contains(out, fmt.Sprintf("token %d,", h.Token()))
		if removed := errors.Is(h.Release(), relock.ErrLost); named != removed {
			t.Errorf("it says %q; token %d was removed: %v", out, h.Token(), removed)
		}
	}
}

// One of two readers loses its grant, and the other keeps it.
func TestUnlockOfOneHolderLeavesTheOthers(t *testing.T) {
	for _, by := range []string{"-token", "-owner"} {
		t.Run(by, func(t *testing.T) {
			w := newWorld(t)
			read := func(owner string) *relock.Hold {
				h, err := w.locks.NewRWLock("x", relock.Owner(owner)).RLocker().Acquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return h
			}
			one, two := read("one"), read("two")
			value := map[string]string{"-token": strconv.FormatInt(two.Token(), 10), "-owner": "two"}[by]
			for n := range 2 {
				want := `x: removed "two": reading, holds 1, token ` + strconv.FormatInt(two.Token(), 10) + ","
				if n == 1 {
					want = "x: that holder does not hold the lock; nothing was changed\n"
				}
				if status, out, _ := w.relock("unlock", "-force", by, value, "x"); status != 0 || !strings.HasPrefix(out, want) {
					t.Errorf("status %d, %q, want %q...", status, out, want)
				}
			}
			<-two.Lost()
			if err := two.Release(); !errors.Is(err, relock.ErrLost) {
				t.Errorf("the release of the one that was removed: %v", err)
			}
			if err := one.Release(); err != nil {
				t.Errorf("the release of the other: %v", err)
			}
		})
	}
}

// What info showed has ended, and another holds by now.
func TestUnlockOfAHolderSparesALaterOne(t *testing.T) {
	w := newWorld(t)
	first := w.hold("x")
	token := strconv.FormatInt(first.Token(), 10)
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	second := w.hold("x")
	for _, args := range [][]string{{"-token", token}, {"-owner", first.Owner()}, {"-token", token, "-owner", second.Owner()}} {
		status, out, _ := w.relock(append([]string{"unlock", "-force", "x", "-json"}, args...)...)
		if want := `{"name":"x","removed":[],"rested_ms":0}` + "\n"; status != 0 || out != want {
			t.Errorf("%q: status %d, %q", args, status, out)
		}
	}
	for _, args := range [][]string{{"-token", "0"}, {"-token", "x"}, {"-owner", ""}} {
		if status, _, _ := w.relock(append([]string{"unlock", "-force", "x"}, args...)...); status != exitUsage {
			t.Errorf("%q: status %d, want %d", args, status, exitUsage)
		}
	}
	if status, _, _ := w.relock("unlock", "-token", "1", "x"); status != exitUsage {
		t.Errorf("without -force: status %d", status)
	}
	if err := second.Release(); err != nil {
		t.Error(err)
	}
}

func TestUnlockWithoutForceRemovesNothing(t *testing.T) {
	w := newWorld(t)
	h := w.hold("x")
	if status, _, _ := w.relock("unlock", "x"); status != exitUsage {
		t.Errorf("status %d, want %d", status, exitUsage)
	}
	if err := h.Release(); err != nil {
		t.Errorf("the holder's release: %v", err)
	}
}

func TestPrefixSeparatesLocks(t *testing.T) {
	w := newWorld(t)
	h := w.hold("x")
	defer func() { _ = h.Release() }()
	if _, out, _ := w.relock("info", "-prefix", "other", "x"); out != "x is free\n0 waiting\n" {
		t.Errorf("info under another prefix: %q", out)
	}
	if status, _, complaint := w.relock("run", "-prefix", "other", "-wait", "0", "x", "--", "true"); status != 0 {
		t.Errorf("run under another prefix: status %d, %s", status, complaint)
	}
}
