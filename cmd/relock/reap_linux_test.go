package main

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// beReaper in the environment makes the test binary the parent of whatever its descendants leave
// behind, as the first process of a container is.
const beReaper = "RELOCK_TEST_REAPER=1"

func init() {
	if slices.Contains(os.Environ(), beReaper) {
		reap(1)
	}
}

// reap makes this process such a reaper, or no more.
func reap(yes uintptr) {
	const setChildSubreaper = 36 // PR_SET_CHILD_SUBREAPER
	_, _, _ = syscall.Syscall(syscall.SYS_PRCTL, setChildSubreaper, yes, 0)
}

// startReaper is start of one that is a reaper.
func (w *world) startReaper(args ...string) *process {
	w.Helper()
	w.Setenv("RELOCK_TEST_REAPER", "1")
	defer func() { _ = os.Unsetenv("RELOCK_TEST_REAPER") }()
	return w.start(args...)
}

// gone waits until there is nothing left of a process, not even a zombie.
func (w *world) gone(pid int) {
	w.Helper()
	for began := time.Now(); ; {
		if _, err := os.Stat("/proc/" + strconv.Itoa(pid)); err != nil {
			return
		}
		if time.Since(began) > 20*time.Second {
			w.Fatalf("the process %d is still there", pid)
		}
	}
}

func TestOrphansOfAContainerAreReaped(t *testing.T) {
	w := newWorld(t)
	p := w.startReaper("run", "x", "--", "sh", "-c", `for i in 1 2 3 4; do (sh -c 'echo $$' &); done; exec sleep 60`)
	for range 4 {
		pid, err := strconv.Atoi(p.next())
		if err != nil {
			t.Fatal(err)
		}
		w.gone(pid)
	}
	p.signal(syscall.SIGTERM)
	p.wantStatus(exitSignal + int(syscall.SIGTERM))
}

// The grace is so long that it is not over while the test runs: what is waited for are zombies.
func TestZombiesHoldUpNoEndAfterALoss(t *testing.T) {
	for of, start := range map[string]func(w *world, args ...string) *process{
		"relock itself":              (*world).startReaper,
		"a process that reaps never": (*world).start,
	} {
		t.Run(of, func(t *testing.T) {
			reap(1) // this process is the one that does not
			defer reap(0)
			w := newWorld(t)
			p := start(w, "run", "-ttl", soon, "-grace", "10m", "x", "--", "sh", "-c", `(sleep 60 & echo $!); exec sleep 60`)
			orphan, err := strconv.Atoi(p.next())
			if err != nil {
				t.Fatal(err)
			}
			defer time.AfterFunc(tooLong, func() { _ = p.cmd.Process.Kill() }).Stop()
			w.relock("unlock", "-force", "x")
			p.wantStatus(exitLost)
			_, _ = syscall.Wait4(orphan, nil, syscall.WNOHANG, nil) // where it has become ours
		})
	}
}

// Both ignore TERM. Fails when the leader alone is killed: what it has started goes on to its end.
func TestTheWholeGroupIsKilledAfterTheGrace(t *testing.T) {
	w := newWorld(t)
	p := w.start("run", "-ttl", soon, "-grace", "300ms", "x", "--", "sh", "-c", `trap '' TERM; (echo started; `+naps+`; echo over) & `+naps)
	p.want("started")
	w.relock("unlock", "-force", "x")
	p.wantStatus(exitLost)
	if rest := p.wantEnd(); slices.Contains(rest, "over") {
		t.Errorf("it went on: %q", rest)
	}
}

func TestAFullDiskIsAFailure(t *testing.T) {
	w := newWorld(t)
	h := w.hold("x")
	defer func() { _ = h.Release() }()
	for _, args := range []string{
		"ls", "ls -json", "info x", "info -json x", "waiters x", "help", "run -h", "version", "version -json", "man", "completion bash",
		"top -looks 2 -every .01", "hold -for .01 y", "doctor -watch 0", "unlock -force z",
	} {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Skip(err)
		}
		cmd := exec.Command(self(t), strings.Fields(args)...)
		complaint := &strings.Builder{}
		cmd.Env, cmd.Stdout, cmd.Stderr = w.env(beRelock), full, complaint
		_ = cmd.Run() // the status says more
		full.Close()
		if got := cmd.ProcessState.ExitCode(); got != exitOutput || !strings.Contains(complaint.String(), "no space left") {
			t.Errorf("%s: status %d, want %d; complaint %q", args, got, exitOutput, complaint)
		}
	}
}

// nohup has relock ignore HUP, and a shell has what it starts in the background ignore INT.
func TestSignalsThatNohupIgnoresAreIgnoredByTheCommand(t *testing.T) {
	w := newWorld(t)
	p := w.startAs("sh", "-c", `trap '' HUP INT; exec "$0" run x grep SigIgn /proc/self/status`, self(t))
	_, mask, _ := strings.Cut(p.next(), ":")
	ignored, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
	if want := uint64(1<<(syscall.SIGHUP-1) | 1<<(syscall.SIGINT-1)); err != nil || ignored&want != want {
		t.Errorf("the command ignores %#x, %v, want %#x in it", ignored, err, want)
	}
	p.wantStatus(0)
}
