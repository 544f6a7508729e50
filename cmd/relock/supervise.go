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
	// groupPoll is how often a group without its leader is looked at: nothing tells
	// when the last of it has ended.
	groupPoll = 20 * time.Millisecond
	// zombiePolls is how many of these looks there are for each one at zombies, which costs more.
	zombiePolls = 10
	// unstopped is after how long relock, where it has not been stopped beside its
	// command, takes it that nobody is there who would continue it.
	unstopped = 200 * time.Millisecond
	// unread is how long, after the command has ended, somebody may take to read that the
	// lock was lost.
	unread = time.Second
)

// A child is the command while it runs.
type child struct {
	*job
	hold    *relock.Hold
	tty     terminal
	pid     int // its own, and its process group's
	changes chan syscall.WaitStatus
	control chan os.Signal // SIGTSTP and SIGCONT, of a shell's job control
	stopped bool
	reaps   bool            // what others leave behind becomes relock's
	asked   bool            // to stop, by a signal to relock itself
	heed    func()          // of such signals again
	said    <-chan struct{} // closed once the loss has been told
}

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
	err = cmd.Start()
	tty.started()
	if err != nil {
		j.complain("relock: %v\n", err)
		return notStarted(err), nil
	}
	c := &child{
		job: j, hold: hold, tty: tty, pid: cmd.Process.Pid,
		changes: make(chan syscall.WaitStatus), control: make(chan os.Signal, 4),
		heed: func() {}, reaps: reaps(),
	}
	defer tty.takeBack(c.pid)
	signal.Notify(c.control, syscall.SIGCONT)
	hearStops(c.control)
	defer signal.Stop(c.control)
	go func() {
		defer close(c.changes)
		c.wait()
		_ = cmd.Wait() // for its output to be copied; it has been waited for
	}()
	return c.watch(ctx, signals), nil
}

// wait tells of each stop of the command, and then of its end. Whatever else relock has become the
// parent of is waited for too: else it stays a zombie.
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

// signal fails where all of the group have just ended.
func (c *child) signal(s syscall.Signal) {
	_ = syscall.Kill(-c.pid, s)
	if c.stopped && s != syscall.SIGTSTP {
		_ = syscall.Kill(-c.pid, syscall.SIGCONT) // it hears nothing before
		c.stopped = false
	}
}

// watch waits for the command, and passes on what it has to know.
func (c *child) watch(ctx context.Context, signals <-chan os.Signal) int {
	lost, stop := c.hold.Lost(), ctx.Done()
	var kill, goOn <-chan time.Time
	for {
		select {
		case s := <-signals:
			c.signal(s.(syscall.Signal))
		case s := <-c.control:
			if s == syscall.SIGTSTP {
				c.asked = true
				c.signal(syscall.SIGTSTP) // relock follows when the command has stopped
			} else {
				goOn = nil
				c.goOn()
			}
		case <-goOn:
			goOn = nil
			c.goOn()
		case <-stop:
			stop = nil
			c.signal(syscall.SIGTERM)
		case <-lost:
			lost = nil
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

// tellLoss does not wait for who reads it: a pipe that is full, or a terminal that Ctrl-S
// has stopped, takes nothing, and the command is to be killed after the grace nevertheless.
func (c *child) tellLoss() {
	c.told = true
	teller, said := *c.tool, make(chan struct{}) // a copy: the tool may be given another stderr
	c.said = said
	go func() {
		defer close(said)
		teller.note("lost the lock %q, stopping the command: %s", c.name, trimName(c.hold.Err()))
	}()
}

// finishTelling gives who reads it a moment at the end. Nothing more is said to a reader
// that takes nothing: the exit status tells the loss too.
func (c *child) finishTelling() {
	select {
	case <-c.said:
	case <-time.After(unread):
		c.err = io.Discard
	}
}

// suspend stops relock because its command has been stopped, as by Ctrl-Z: the shell sees
// a job that is stopped, and has its terminal again. Who is in relock's group is part of
// that job. Where no shell is there to continue it, the kernel does not stop it.
func (c *child) suspend(by syscall.Signal) (goOn <-chan time.Time) {
	if c.hold.Err() != nil {
		c.stopped = true
		c.signal(syscall.SIGTERM)
		return nil
	}
	c.stopped = true
	if c.tty.in == nil && !c.asked {
		return nil // no shell's business, but somebody's
	}
	c.asked = false
	if c.tty.of(c.pid) && by != syscall.SIGTSTP && by != syscall.SIGSTOP {
		c.goOn() // it asked for the terminal before that was its own
		return nil
	}
	c.tty.takeBack(c.pid)
	c.heed = letStop()
	_ = syscall.Kill(0, syscall.SIGTSTP)
	if by == syscall.SIGSTOP {
		return nil // somebody means it
	}
	return time.NewTimer(unstopped).C
}

// goOn continues the command after relock has been continued, with the terminal if the
// shell has given it to relock's group. A hold that is lost has its command ended instead.
func (c *child) goOn() {
	c.heed()
	if c.hold.Err() != nil {
		c.signal(syscall.SIGTERM)
		return
	}
	c.tty.give(c.pid)
	if c.stopped {
		c.stopped = false
		_ = syscall.Kill(-c.pid, syscall.SIGCONT)
	}
}

// ended waits for what the command has left, and returns the exit status that a shell
// would have for it.
func (c *child) ended(ws syscall.WaitStatus, lost bool, signals <-chan os.Signal, kill <-chan time.Time) int {
	if lost {
		c.awaitGroup(signals, kill)
	}
	<-c.changes // until its output has been copied
	if lost {
		c.finishTelling()
	}
	if ws.Signaled() {
		return exitSignal + int(ws.Signal())
	}
	return ws.ExitStatus()
}

// awaitGroup waits for the rest of the group, whose leader has ended: after a loss
// nothing of it may go on. A nil kill means that they have been killed.
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

// anyLeft says whether any process of the group may go on. A zombie does not, but the system counts
// it until its parent waits for it: relock, where it reaps, or a parent that never does.
func (c *child) anyLeft(closely bool) bool {
	for c.reaps {
		if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 && err != syscall.EINTR {
			break
		}
	}
	return syscall.Kill(-c.pid, 0) == nil && (!closely || !onlyZombies(c.pid))
}
