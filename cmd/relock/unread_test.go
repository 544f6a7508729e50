//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
)

// nobodyReads is the end of a pipe whose reader has gone.
func nobodyReads(t *testing.T) *os.File {
	t.Helper()
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	in.Close()
	t.Cleanup(func() { out.Close() })
	return out
}

// fullPipe is the end of a pipe that takes nothing more: its reader does not read.
func fullPipe(t *testing.T) *os.File {
	t.Helper()
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		out.Close()
	})
	fd := int(out.Fd())
	if err := syscall.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	for err = nil; err == nil; { // a byte at a time at last: what is left of a page takes that
		_, err = syscall.Write(fd, []byte("."))
	}
	if !errors.Is(err, syscall.EAGAIN) {
		t.Fatal(err)
	}
	if err := syscall.SetNonblock(fd, false); err != nil { // relock has it as a shell would give it
		t.Fatal(err)
	}
	return out
}

// startUnread is start with a standard error of the test's.
func (w *world) startUnread(stderr *os.File, args ...string) *process {
	w.Helper()
	out, theirs, err := os.Pipe()
	if err != nil {
		w.Fatal(err)
	}
	p := &process{w: w, cmd: exec.Command(self(w.T), args...), lines: make(chan string, 1000)}
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = w.env(beRelock), theirs, stderr
	p.launch(theirs, out)
	return p
}

// That the lock is lost was said before the command was told: where nobody read it, relock
// died of it, or hung, and the command went on.
func TestALossStopsTheCommandThoughNobodyReadsOfIt(t *testing.T) {
	for when, stderr := range map[string]func(*testing.T) *os.File{"gone": nobodyReads, "full": fullPipe} {
		for _, form := range []string{"", "-json"} {
			t.Run(when+form, func(t *testing.T) {
				w := newWorld(t)
				args := []string{"run", "-ttl", soon, "-grace", "300ms", "x", "--", "sh", "-c", `exec 2>/dev/null; (trap 'echo told' TERM; echo started; ` + naps + `) & wait`}
				if form != "" {
					args = slices.Insert(args, 1, form)
				}
				p := w.startUnread(stderr(t), args...)
				p.want("started")
				w.relock("unlock", "-force", "x")
				p.want("told")
				if rest := p.wantEnd(); slices.Contains(rest, "started") {
					t.Errorf("it went on: %q", rest)
				}
				p.wantStatus(exitLost)
			})
		}
	}
}

func TestWhoHasGoneChangesNoExitStatus(t *testing.T) {
	w := newWorld(t)
	status := func(args ...string) int {
		cmd := exec.Command(self(t), args...)
		cmd.Env, cmd.Stdout, cmd.Stderr = w.env(beRelock), nobodyReads(t), nobodyReads(t)
		_ = cmd.Run() // the status says more
		return cmd.ProcessState.ExitCode()
	}
	if got := status("hold", "x", "-for", ".05"); got != 0 {
		t.Errorf("hold: status %d", got)
	}
	// The command's own end by that signal is its default still.
	if got := status("run", "x", "--", "sh", "-c", "kill -PIPE $$; exit 3"); got != exitSignal+int(syscall.SIGPIPE) {
		t.Errorf("a command that SIGPIPE ends: status %d", got)
	}
	w.wantFree("x")
	h := w.hold("x")
	for _, verb := range [][]string{{"run", "x", "-wait", "0", "true"}, {"wait", "x", "-wait", "0"}} {
		if got := status(verb...); got != exitNotAcquired {
			t.Errorf("%q: status %d, want %d", verb, got, exitNotAcquired)
		}
	}
	if err := h.Release(); err != nil {
		t.Error(err)
	}
}

func TestTopEndsWhenNobodyReadsIt(t *testing.T) {
	w := newWorld(t)
	cmd := exec.CommandContext(t.Context(), self(t), "top", "-every", ".01", "-looks", "100")
	cmd.Env, cmd.Stdout = w.env(beRelock), nobodyReads(t)
	_ = cmd.Run() // the status says more
	if ws, is := cmd.ProcessState.Sys().(syscall.WaitStatus); !is || ws.Signal() != syscall.SIGPIPE {
		t.Errorf("%v, want it ended by what it writes to nobody", cmd.ProcessState)
	}
}
