//go:build unix

package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/relock-go/relock"
)

const (
	// groupPoll is how often a group without its leader is checked, because no event tells when its last
	// process has ended.
	groupPoll = 20 * time.Millisecond
	// zombiePolls is how many checks there are for each check for zombies, which costs more.
	zombiePolls = 10
	// unstopped is how long relock waits to be stopped together with its command. After that nobody is there
	// who would continue relock.
	unstopped = 200 * time.Millisecond
	// unread is how long, after the command has ended, relock waits until the message of the loss is read.
	unread = time.Second
	// unready is how long the command has to set its traps. An earlier -yield would end it.
	unready = time.Second
)

// A child is the running command.
type child struct {
	*job
	hold    *relock.Hold
	tty     terminal
	pid     int // of the process and its process group
	changes chan syscall.WaitStatus
	control chan os.Signal // SIGTSTP and SIGCONT, from a shell's job control
	stopped bool
	uses    bool            // the command uses the terminal, so it gets it again when relock goes on
	reaps   bool            // orphans become relock's children
	asked   bool            // a signal asked relock itself to stop
	sentInt bool            // relock has sent it SIGINT
	heed    func()          // catches such signals again
	said    <-chan struct{} // closed when the loss was reported
}

// supervise runs the command until it ends, and stops it if the lock is lost.
func (j *job) supervise(ctx context.Context, hold *relock.Hold, signals <-chan os.Signal) (status int, err error) {
	// Linux kills the command when the thread that started it ends. So that thread must live as long as the
	// command.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	if err := hold.Err(); err != nil {
		return 0, err
	}
	cmd := exec.Command(j.command[0], j.command[1:]...)
	cmd.Env = j.environ(hold.Token())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = j.in, j.out, j.err
	tty := terminalOf(j.in, j.out)
	cmd.SysProcAttr = tty.attributes()
	err = cmd.Start()
	tty.started()
	if err != nil {
		tty.reclaim()
		return j.failAs(notStarted(err), err), nil
	}
	j.started = true // a command that ended with the status of one that was not started has run
	c := &child{
		job: j, hold: hold, tty: tty, pid: cmd.Process.Pid,
		changes: make(chan syscall.WaitStatus), control: make(chan os.Signal, 4),
		heed: func() {}, reaps: reaps(), uses: tty.first,
	}
	defer tty.close(c.pid)
	signal.Notify(c.control, syscall.SIGCONT)
	hearStops(c.control)
	defer signal.Stop(c.control)
	go func() {
		defer close(c.changes)
		c.wait()
		_ = cmd.Wait() // only to copy its output; the process was waited for before
	}()
	return c.watch(ctx, signals), nil
}

// wait reports each stop of the command, and then its end. It also waits for orphans that became relock's
// children, because they would stay zombies otherwise.
func (c *child) wait() {
	who := c.pid
	if c.reaps {
		who = -1
	}
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(who, &ws, syscall.WUNTRACED, nil)
		if err == syscall.EINTR || err == nil && pid != c.pid {
			continue
		}
		c.changes <- ws
		if err != nil || !ws.Stopped() {
			return
		}
	}
}

// signal sends a signal to the group. It fails if all processes of the group have just ended.
func (c *child) signal(s syscall.Signal) {
	_ = syscall.Kill(-c.pid, s)
	c.sentInt = c.sentInt || s == syscall.SIGINT
	if c.stopped && s != syscall.SIGTSTP {
		_ = syscall.Kill(-c.pid, syscall.SIGCONT) // a stopped command receives no signal before that
		c.stopped = false
	}
}

// watch waits for the command, and passes on signals and the loss.
func (c *child) watch(ctx context.Context, signals <-chan os.Signal) int {
	lost, stop := c.hold.Lost(), ctx.Done()
	var kill, goOn, ready <-chan time.Time
	var wanted <-chan struct{}
	if c.yield != 0 {
		ready = time.After(unready)
	}
	for {
		select {
		case s := <-signals:
			c.signal(s.(syscall.Signal))
		case s := <-c.control:
			switch {
			case s != syscall.SIGTSTP:
				goOn = nil
				c.goOn()
			case c.stopped:
				c.asked = true
				goOn = c.suspend(syscall.SIGTSTP)
			default:
				c.asked = true
				c.signal(syscall.SIGTSTP) // relock stops too, when the command has stopped
			}
		case <-goOn:
			goOn = nil
			c.goOn()
		case <-stop:
			stop = nil
			c.signal(syscall.SIGTERM)
		case <-ready:
			ready, wanted = nil, c.hold.Wanted()
		case <-wanted:
			wanted = nil
			c.sentInt = c.sentInt || syscall.Signal(c.yield) == syscall.SIGINT
			_ = syscall.Kill(-c.pid, syscall.Signal(c.yield)) // a stopped command stays stopped
		case <-lost:
			lost, ready, wanted = nil, nil, nil
			c.signal(syscall.SIGTERM)
			kill = time.After(c.grace)
			c.tellLoss()
		case <-kill:
			kill = nil
			_ = syscall.Kill(-c.pid, syscall.SIGKILL)
		case ws := <-c.changes:
			if !ws.Stopped() {
				return c.ended(ws, lost == nil, signals, kill)
			}
			goOn = c.suspend(ws.StopSignal())
		}
	}
}

// tellLoss reports the loss without waiting for its reader. A full pipe, or a terminal that Ctrl-S has
// stopped, takes nothing, and the command must be killed after the grace all the same.
func (c *child) tellLoss() {
	c.told = true
	teller, said := *c.tool, make(chan struct{}) // a copy, because the tool may get another stderr
	c.said = said
	go func() {
		defer close(said)
		teller.note("lost the lock %q, stopping the command: %s", c.name, trimName(c.hold.Err()))
	}()
}

// finishTelling gives the reader a moment at the end. After that nothing more is said to a reader that takes
// nothing. The exit status shows the loss too.
func (c *child) finishTelling() {
	select {
	case <-c.said:
	case <-time.After(unread):
		c.err = io.Discard
	}
}

// suspend stops relock because its command was stopped, for example by Ctrl-Z. The shell then sees a stopped
// job, and gets its terminal back. All of relock's group belongs to that job. If no shell is there to
// continue it, the kernel does not stop it. If the command was stopped because it needs the terminal, and relock's job
// has that, the command gets it and goes on.
func (c *child) suspend(by syscall.Signal) (goOn <-chan time.Time) {
	if c.hold.Err() != nil {
		c.stopped = true
		c.signal(syscall.SIGTERM)
		return nil
	}
	c.stopped = true
	needs := by == syscall.SIGTTIN || by == syscall.SIGTTOU
	switch {
	case needs && !c.asked && (c.tty.of(c.pid) || c.tty.of(syscall.Getpgrp())):
		c.uses = true
		c.goOn()
		return nil
	case !c.asked && !needs && !c.tty.input && !c.tty.of(c.pid):
		return nil // stopped by somebody other than the shell
	}
	c.asked = false
	c.uses = c.uses || needs
	c.tty.takeBack(c.pid)
	c.heed = letStop()
	_ = syscall.Kill(0, syscall.SIGTSTP)
	if by == syscall.SIGSTOP {
		return nil // somebody stopped it on purpose
	}
	return time.NewTimer(unstopped).C
}

// goOn continues the command after relock was continued. If the command uses the terminal, it gets it, provided that the
// shell has given it to relock's group. If the hold was lost in the meantime, goOn ends the command instead.
func (c *child) goOn() {
	c.heed()
	if c.hold.Err() != nil {
		c.signal(syscall.SIGTERM)
		return
	}
	if c.uses {
		c.tty.give(c.pid)
	}
	if c.stopped {
		c.stopped = false
		_ = syscall.Kill(-c.pid, syscall.SIGCONT)
	}
}

// ended waits for the processes that the command has left, and returns the exit status that a shell would
// return.
func (c *child) ended(ws syscall.WaitStatus, lost bool, signals <-chan os.Signal, kill <-chan time.Time) int {
	if lost {
		c.awaitGroup(signals, kill)
	}
	<-c.changes // wait until its output was copied
	if lost {
		c.finishTelling()
	}
	if ws.Signaled() {
		switch {
		case ws.Signal() != syscall.SIGINT:
		case c.tty.of(c.pid) && !c.sentInt:
			c.interrupt = dieWithJob
		default:
			c.interrupt = dieAlone
		}
		return exitSignal + int(ws.Signal())
	}
	return ws.ExitStatus()
}

// awaitGroup waits for the rest of a group whose leader has ended, because after a loss nothing of it may go
// on. A nil kill means that the group was killed.
func (c *child) awaitGroup(signals <-chan os.Signal, kill <-chan time.Time) {
	poll := time.NewTicker(groupPoll)
	defer poll.Stop()
	for n := 1; kill != nil && c.anyLeft(n%zombiePolls == 0); n++ {
		select {
		case <-poll.C:
		case s := <-signals:
			c.signal(s.(syscall.Signal))
		case <-kill:
			kill = nil
			_ = syscall.Kill(-c.pid, syscall.SIGKILL)
		}
	}
}

// anyLeft reports whether any process of the group may still run. Zombies do not run, but the system counts
// them until their parent waits for them: relock, if it reaps, or a parent that never does.
func (c *child) anyLeft(closely bool) bool {
	for c.reaps {
		if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 && err != syscall.EINTR {
			break
		}
	}
	return syscall.Kill(-c.pid, 0) == nil && (!closely || !onlyZombies(c.pid))
}
