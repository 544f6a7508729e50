//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestRunExitsAsTheCommandDoes(t *testing.T) {
	w := newWorld(t)
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("no program"), 0o644); err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("\x7fELF, but no more"), 0o755); err != nil {
		t.Fatal(err)
	}
	for want, commands := range map[int][][]string{
		0:                 {{"true"}},
		7:                 {{"sh", "-c", "exit 7"}},
		exitSignal + 9:    {{"sh", "-c", "kill -9 $$"}},
		exitSignal + 15:   {{"sh", "-c", "kill -15 $$"}},
		exitNotFound:      {{"no-such-command"}, {"./no-such-file"}},
		exitNotExecutable: {{plain}, {broken}, {"/"}},
	} {
		for _, command := range commands {
			status, _, complaint := w.relock(append([]string{"run", "x", "--"}, command...)...)
			if status != want {
				t.Errorf("%q: status %d, want %d; complaint %q", command, status, want, complaint)
			}
			w.wantFree("x")
		}
	}
}

func TestCommandIsToldNameTokenAndNamedOwner(t *testing.T) {
	w := newWorld(t)
	show := []string{"x y", "--", "sh", "-c", `echo "$RELOCK_NAME|$RELOCK_TOKEN|${RELOCK_OWNER-none}"`}
	outer := []string{"RELOCK_NAME=outer", "RELOCK_TOKEN=1", "RELOCK_OWNER=outer"}
	var tokens []int64
	for _, owner := range []string{"", "me"} {
		args, want := append([]string{"run"}, show...), "none"
		if owner != "" {
			args, want = append([]string{"run", "-owner", owner}, show...), owner
		}
		status, out, complaint := w.relockEnv(outer, args...)
		var token int64
		line := strings.ReplaceAll(out, "|", " ")
		if n, err := fmt.Sscanf(line, "x y %d "+want+"\n", &token); status != 0 || n != 1 || err != nil || token < 2 {
			t.Errorf("status %d, output %q, want the owner %q; complaint %q", status, out, want, complaint)
		}
		tokens = append(tokens, token)
	}
	if tokens[1] <= tokens[0] {
		t.Errorf("tokens of two runs: %d, want them to grow", tokens)
	}
}

func TestCommandRunsUnderTheLock(t *testing.T) {
	w := newWorld(t)
	status, out, complaint := w.relockEnv([]string{beRelock}, "run", "-owner", "me", "x", "--", self(t), "info", "x")
	if status != 0 || !strings.HasPrefix(out, `x is held by "me": holds 1, `) {
		t.Errorf("the command sees: status %d, %q; complaint %q", status, out, complaint)
	}
	w.wantFree("x")
}

func TestHeldLockExits75AndStartsNothing(t *testing.T) {
	w := newWorld(t)
	h := w.hold("x")
	for _, wait := range []string{"0", "500ms"} {
		if status, out, complaint := w.relock("run", "-wait", wait, "x", "--", "echo", "started"); status != exitNotAcquired || out != "" || complaint == "" {
			t.Errorf("-wait %s: status %d, output %q, complaint %q", wait, status, out, complaint)
		}
	}
	if err := h.Release(); err != nil {
		t.Error(err)
	}
	w.wantFree("x")
}

func TestSameOwnerReenters(t *testing.T) {
	w := newWorld(t)
	inner := func(owner string) int {
		status, _, _ := w.relockEnv([]string{beRelock}, "run", "-owner", "flow", "x", "--", self(t), "run", "-owner", owner, "-wait", "0", "x", "--", "true")
		return status
	}
	if got := inner("flow"); got != 0 {
		t.Errorf("the same owner: status %d", got)
	}
	if got := inner("other"); got != exitNotAcquired {
		t.Errorf("another owner: status %d, want %d", got, exitNotAcquired)
	}
	w.wantFree("x")
}

// soon is the TTL of runs that lose their lock: who has had it for a moment only
// may yet hear nothing of that before the next renewal.
const soon = "3s"

// naps is what a command does that goes on when SIGTERM ends what it has started.
// It ends after half a minute, also where a killed test cannot see to that.
const naps = `i=0; while [ $i -lt 600 ]; do i=$((i+1)); sleep 0.05; done`

func TestLostLockStopsTheCommand(t *testing.T) {
	w := newWorld(t)
	p := w.start("run", "-ttl", soon, "x", "--", "sh", "-c", "echo started; sleep 30")
	p.want("started")
	if len(w.info("x").Holders) != 1 {
		t.Error("nobody holds the lock while the command runs")
	}
	if status, _, complaint := w.relock("unlock", "-force", "x"); status != 0 {
		t.Fatal(complaint)
	}
	p.wantEnd()
	p.wantStatus(exitLost)
	w.wantFree("x")
}

func TestCommandThatIgnoresTermIsKilledAfterTheGrace(t *testing.T) {
	w := newWorld(t)
	p := w.start("run", "-ttl", soon, "-grace", "300ms", "x", "--", "sh", "-c", `trap 'echo told' TERM; echo started; `+naps)
	p.want("started")
	w.relock("unlock", "-force", "x")
	p.want("told")
	p.wantEnd()
	p.wantStatus(exitLost)
}

func TestNothingOfTheCommandOutlivesALoss(t *testing.T) {
	w := newWorld(t)
	// The command itself ends at SIGTERM; what it has started does not.
	p := w.start("run", "-ttl", soon, "-grace", "300ms", "x", "--", "sh", "-c", `(trap 'echo told' TERM; echo started; `+naps+`) & wait`)
	p.want("started")
	w.relock("unlock", "-force", "x")
	p.want("told")
	p.wantStatus(exitLost)
	if rest := p.wantEnd(); slices.Contains(rest, "started") {
		t.Errorf("it went on: %q", rest)
	}
}

func TestCleanEndWithinTheGraceIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	p := w.start("run", "-ttl", soon, "-grace", "1m", "x", "--", "sh", "-c", `trap 'sleep 0.1; echo cleaned; exit 0' TERM; echo started; `+naps)
	p.want("started")
	w.relock("unlock", "-force", "x")
	p.want("cleaned")
	p.wantStatus(exitLost)
}

func TestSignalsArePassedOn(t *testing.T) {
	w := newWorld(t)
	for name, s := range map[string]syscall.Signal{
		"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP,
		"QUIT": syscall.SIGQUIT, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2,
	} {
		if signal.Ignored(s) {
			continue // as under nohup: a shell that begins so cannot hear it either
		}
		p := w.start("run", "x", "--", "sh", "-c", `for s in TERM INT HUP QUIT USR1 USR2
			do trap "echo told $s; exit 5" $s; done; echo started; `+naps)
		p.want("started")
		p.signal(s)
		p.want("told " + name)
		p.wantStatus(5)
		w.wantFree("x")
	}
}

// The command leaves the signal to what it has started. Fails when nobody but its own process gets it.
func TestSignalsArePassedOnToTheGroup(t *testing.T) {
	w := newWorld(t)
	p := w.start("run", "x", "--", "sh", "-c", `trap : USR1
		(trap 'echo told; exit 0' USR1; echo started; `+naps+`) & wait; wait`)
	p.want("started")
	p.signal(syscall.SIGUSR1)
	p.want("told")
	p.wantStatus(0)
}

// The command gets the signal once, however many wait, and keeps the lock until it ends.
func TestCommandIsSignalledWhenAnotherRunWaits(t *testing.T) {
	w := newWorld(t)
	p := w.start("run", "-yield", "usr1", "x", "--", "sh", "-c", `trap 'echo yields' USR1; trap 'echo told; exit 5' TERM; echo started; `+naps)
	p.want("started")
	if status, _, _ := w.relock("run", "-wait", "0", "x", "--", "true"); status != exitNotAcquired {
		t.Errorf("one attempt: status %d", status)
	}
	first := w.start("run", "x", "--", "true")
	p.want("yields")
	second := w.start("run", "x", "--", "true")
	w.waitForQueue("x", 2)
	p.signal(syscall.SIGTERM)
	p.want("told") // and was not signalled again before that
	p.wantStatus(5)
	first.wantStatus(0)
	second.wantStatus(0)
	w.wantFree("x")
}

// A shell needs a moment until its trap is set, and would end without it.
func TestCommandThatBeginsWhileOthersWaitIsNotSignalledAtOnce(t *testing.T) {
	w := newWorld(t)
	h := w.hold("x")
	p := w.start("run", "-yield", "usr1", "x", "--", "sh", "-c", `sleep 0.2; trap 'echo yields; exit 5' USR1; echo started; `+naps)
	w.waitForQueue("x", 1)
	next := w.start("run", "x", "--", "true")
	w.waitForQueue("x", 2)
	released := time.Now()
	if err := h.Release(); err != nil {
		t.Fatal(err)
	}
	p.want("started")
	p.want("yields")
	if waited := time.Since(released); waited < time.Second {
		t.Errorf("signalled %v after its start at the latest, want a second", waited)
	}
	p.wantStatus(5)
	next.wantStatus(0)
}

func TestYieldTakesASignalByItsName(t *testing.T) {
	w := newWorld(t)
	for _, wrong := range []string{"", "KILL", "STOP", "10", "USR3"} {
		if status, _, complaint := w.relock("run", "-yield", wrong, "x", "--", "true"); status != exitUsage || !strings.Contains(complaint, "HUP, INT, QUIT, TERM, USR1, USR2, WINCH") {
			t.Errorf("-yield %q: status %d, %q", wrong, status, complaint)
		}
	}
	for _, right := range []string{"TERM", "sigusr2", "winch"} {
		if status, _, complaint := w.relock("run", "-yield", right, "x", "--", "true"); status != 0 {
			t.Errorf("-yield %q: status %d, %q", right, status, complaint)
		}
	}
}

func TestLockIsHeldUntilTheSignalledCommandEnds(t *testing.T) {
	w := newWorld(t)
	p := w.start("run", "-ttl", soon, "-grace", "100ms", "x", "--", "sh", "-c", `trap 'echo told' TERM; echo started; `+naps)
	p.want("started")
	p.signal(syscall.SIGTERM)
	p.want("told")
	if status, _, _ := w.relock("run", "-wait", "0", "x", "--", "true"); status != exitNotAcquired {
		t.Errorf("the lock is free while the command goes on: status %d", status)
	}
	w.relock("unlock", "-force", "x") // nothing else ends this command
	p.wantEnd()
	p.wantStatus(exitLost)
}

func TestSignalEndsTheWait(t *testing.T) {
	w := newWorld(t)
	h := w.hold("x")
	p := w.start("run", "x", "--", "echo", "started")
	w.waitForQueue("x", 1)
	p.signal(syscall.SIGTERM)
	if out := p.wantEnd(); len(out) > 0 {
		t.Errorf("the command ran: %q", out)
	}
	p.wantStatus(exitSignal + int(syscall.SIGTERM))
	if n := w.info("x").Waiters; n != 0 {
		t.Errorf("%d wait after it, want none", n)
	}
	if err := h.Release(); err != nil {
		t.Error(err)
	}
}

func TestKilledRelockLeavesNoCommandRunning(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux: the kernel kills the command there")
	}
	w := newWorld(t)
	p := w.start("run", "x", "--", "sh", "-c", `trap '' TERM INT HUP; echo started; `+naps)
	p.want("started")
	p.signal(syscall.SIGKILL)
	p.wantEnd() // of the command too: it had the output open
}

func TestIgnoredHangupStaysIgnored(t *testing.T) {
	w := newWorld(t)
	// As nohup does it.
	p := w.startAs("sh", "-c", `trap '' HUP; exec "$@"`, "sh", self(t), "run", "x", "--", "sh", "-c", `echo started; sleep 0.2; echo ended`)
	p.want("started")
	p.signal(syscall.SIGHUP)
	p.want("ended")
	p.wantStatus(0)
}

// TestRunTakesTheLockThatItsFlagsSay asks what the command finds held.
func TestRunTakesTheLockThatItsFlagsSay(t *testing.T) {
	for flags, want := range map[string]struct{ kind, mode string }{
		"":             {"plain", ""},
		"-fair":        {"fair", ""},
		"-read":        {"rw", "reading, "},
		"-write":       {"rw", "writing, "},
		"-n 3":         {"semaphore", ""},
		"-fair -read":  {"fair rw", "reading, "},
		"-fair -write": {"fair rw", "writing, "},
	} {
		t.Run(flags, func(t *testing.T) {
			w := newWorld(t)
			args := append(append([]string{"run", "-owner", "me"}, strings.Fields(flags)...), "x", "--", self(t), "info", "x")
			status, out, complaint := w.relockEnv([]string{beRelock}, args...)
			if status != 0 || !strings.HasPrefix(out, `x is held by "me": `+want.mode+"holds 1, ") || !strings.HasSuffix(out, "\nkind: "+want.kind+"\n0 waiting\n") {
				t.Errorf("the command sees: status %d, %q; complaint %q", status, out, complaint)
			}
			w.wantFree("x")
		})
	}
}

func TestReadersShareAndWritersDoNot(t *testing.T) {
	w := newWorld(t)
	h, err := w.locks.NewRWLock("x").RLocker().Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if status, out, complaint := w.relock("run", "-read", "-wait", "0", "x", "--", "echo", "started"); status != 0 || out != "started\n" {
		t.Errorf("a second reader: status %d, %q, complaint %q", status, out, complaint)
	}
	if status, out, _ := w.relock("run", "-write", "-wait", "0", "x", "--", "echo", "started"); status != exitNotAcquired || out != "" {
		t.Errorf("a writer beside a reader: status %d, %q", status, out)
	}
	if err := h.Release(); err != nil {
		t.Error(err)
	}
	w.wantFree("x")
}

func TestOtherKindExits69AndStartsNothing(t *testing.T) {
	w := newWorld(t)
	h := w.hold("x")
	for flag, kind := range map[string]string{"-fair": "fair", "-read": "rw", "-write": "rw"} {
		status, out, complaint := w.relock("run", flag, "-wait", "1s", "x", "--", "echo", "started")
		if status != exitUnavailable || out != "" || !strings.Contains(complaint, `its kind is "plain"`) || !strings.Contains(complaint, `asks for "`+kind+`"`) {
			t.Errorf("%s: status %d, output %q, complaint %q", flag, status, out, complaint)
		}
	}
	if err := h.Release(); err != nil {
		t.Error(err)
	}
	if status, _, complaint := w.relock("run", "-fair", "x", "--", "true"); status != 0 {
		t.Errorf("a free lock of another kind: status %d, complaint %q", status, complaint)
	}
}

// The signal is taken off its channel before fn returns, and ends the context after that.
// Fails when the command is started, and never gets the signal.
func TestASignalAtTheMomentOfTheGrantCounts(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	j := &job{}
	for range 100 {
		signals := make(chan os.Signal)
		err := j.interruptible(t.Context(), signals, func(context.Context) error {
			for range 10 { // until the goroutine that waits for signals is asleep
				runtime.Gosched()
			}
			signals <- syscall.SIGTERM
			return nil
		})
		if _, is := errors.AsType[interrupted](err); !is {
			t.Fatalf("%v, want the signal", err)
		}
	}
}
