//go:build unix

package main

import (
	"os/exec"
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
