//go:build unix

package main

import (
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stopped is a command that has stopped itself, under a hold that was lost since.
func (w *world) stopped(out *strings.Builder) (cmd *exec.Cmd, c *child) {
	w.Helper()
	h := w.hold("x")
	if _, err := w.locks.NewLock("x").ForceUnlock(w.Context()); err != nil {
		w.Fatal(err)
	}
	<-h.Lost()
	cmd = exec.Command("sh", "-c", `kill -STOP $$; echo "worked on"`)
	cmd.Stdout, cmd.SysProcAttr = out, &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(cmd.Process.Pid, &ws, syscall.WUNTRACED, nil); err != nil || !ws.Stopped() {
		w.Fatalf("%v, %v, want it stopped", ws, err)
	}
	return cmd, &child{job: &job{tool: &tool{}}, hold: h, pid: cmd.Process.Pid, heed: func() {}, stopped: true}
}

// No instant lies between the end of a stop and that of the command: what tells of the loss
// besides, a moment later, is not part of this.
func TestLockThatIsLostWhileStoppedEndsTheCommand(t *testing.T) {
	for when, then := range map[string]func(*child){
		"continued by the shell":  (*child).goOn,
		"stopped by the terminal": func(c *child) { c.suspend(syscall.SIGTSTP) },
	} {
		t.Run(when, func(t *testing.T) {
			var out strings.Builder
			cmd, c := newWorld(t).stopped(&out)
			defer time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() }).Stop() // stopped for ever
			then(c)
			_ = cmd.Wait() // the state says more
			ws, is := cmd.ProcessState.Sys().(syscall.WaitStatus)
			if !is || ws.Signal() != syscall.SIGTERM || out.Len() > 0 {
				t.Errorf("%v, it has said %q, want it terminated before it goes on", cmd.ProcessState, out.String())
			}
		})
	}
}

// The leader ends at TERM, and the rest has minutes: a signal to relock is for whoever is left.
func TestSignalIsPassedOnToWhatIsLeftAfterALoss(t *testing.T) {
	w := newWorld(t)
	p := w.start("run", "-ttl", soon, "-grace", "10m", "x", "--", "sh", "-c",
		`echo $$; (trap 'echo told' TERM; trap 'echo bye; exit' USR1; echo started; `+naps+`) & wait`)
	leader, err := strconv.Atoi(p.next())
	if err != nil {
		t.Fatal(err)
	}
	p.want("started")
	w.relock("unlock", "-force", "x")
	p.want("told")
	for began := time.Now(); syscall.Kill(leader, 0) == nil; { // until relock has waited for it
		if time.Since(began) > tooLong {
			t.Fatal("the leader does not end")
		}
		runtime.Gosched()
	}
	again, over := time.NewTicker(50*time.Millisecond), time.After(20*time.Second)
	defer again.Stop()
	for {
		select {
		case line, open := <-p.lines:
			if !open {
				t.Fatal("it has ended, and heard nothing")
			}
			if line == "bye" {
				p.wantStatus(exitLost)
				return
			}
		case <-again.C: // the first one may be what watch has just heard, and passes on
			_ = p.cmd.Process.Signal(syscall.SIGUSR1)
		case <-over:
			t.Fatal("what is left of the group has not heard of it")
		}
	}
}
