//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/relock-go/relock"
)

// groupPoll is how often a group without its leader is looked at: nothing tells
// when the last of it has ended.
const groupPoll = 20 * time.Millisecond

// supervise runs the command until it ends, and stops it when the lock is lost.
func (j *job) supervise(ctx context.Context, hold *relock.Hold, signals <-chan os.Signal) (status int, err error) {
	// Linux kills the command when the thread ends that started it, so that
	// thread must be here for as long as the command is.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	if err := hold.Err(); err != nil {
		return 0, err
	}
	cmd := exec.Command(j.command[0], j.command[1:]...)
	cmd.Env = j.environ(hold.Token())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = j.in, j.out, j.err
	tty := terminalOf(j.in)
	cmd.SysProcAttr = tty.attributes()
	if err := cmd.Start(); err != nil {
		j.complain("relock: %v\n", err)
		return notStarted(err), nil
	}
	defer tty.takeBack()
	return j.watch(ctx, cmd, hold, signals), nil
}

// watch waits for the command, and passes on what it has to know.
func (j *job) watch(ctx context.Context, cmd *exec.Cmd, hold *relock.Hold, signals <-chan os.Signal) int {
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	group := -cmd.Process.Pid
	lost, stop := hold.Lost(), ctx.Done()
	var kill <-chan time.Time
	for {
		select {
		case s := <-signals:
			_ = syscall.Kill(group, s.(syscall.Signal)) // fails where all have just ended
		case <-stop:
			stop = nil
			_ = syscall.Kill(group, syscall.SIGTERM)
		case <-lost:
			lost = nil
			j.complain("relock: lost the lock %q: stopping the command\n", j.name)
			_ = syscall.Kill(group, syscall.SIGTERM)
			timer := time.NewTimer(j.grace)
			defer timer.Stop()
			kill = timer.C
		case <-kill:
			kill = nil
			_ = syscall.Kill(group, syscall.SIGKILL)
		case err := <-ended:
			if lost == nil {
				awaitGroup(group, kill)
			}
			return ending(err)
		}
	}
}

// awaitGroup waits for the rest of a group whose leader has ended: after a loss
// nothing of it may go on. A nil kill means that they have been killed.
func awaitGroup(group int, kill <-chan time.Time) {
	poll := time.NewTicker(groupPoll)
	defer poll.Stop()
	for kill != nil && syscall.Kill(group, 0) == nil {
		select {
		case <-poll.C:
		case <-kill:
			kill = nil
			_ = syscall.Kill(group, syscall.SIGKILL)
		}
	}
}

// ending is the exit status that a shell would have for the command.
func ending(err error) int {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return 0 // or its output could not be copied, which only happens in tests
	}
	if ws := exit.Sys().(syscall.WaitStatus); ws.Signaled() {
		return exitSignal + int(ws.Signal())
	}
	return exit.ExitCode()
}
