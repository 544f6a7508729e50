//go:build unix

package main

import (
	"io"
	"os"
	"os/signal"
	"syscall"
	"unsafe"
)

// A terminal is the one that the command is to have while relock has it. The command's
// process group is its own, so without that a command that asks the user something
// would be stopped like a job in the background. The zero terminal is none.
type terminal struct {
	in   *os.File
	ours bool // when it was looked at: one that runs in the background must not take it
}

// terminalOf returns the terminal that in is.
func terminalOf(in io.Reader) terminal {
	f, ok := in.(*os.File)
	if !ok {
		return terminal{}
	}
	var owner int32
	if err := ioctl(f, syscall.TIOCGPGRP, &owner); err != nil {
		return terminal{}
	}
	return terminal{f, int(owner) == syscall.Getpgrp()}
}

// attributes of a command that gets a process group of its own, and the terminal.
func (t terminal) attributes() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(a)
	if t.ours {
		// The new group asks for the terminal from the background, which stops
		// whoever does not ignore this signal; so does relock in takeBack.
		signal.Ignore(syscall.SIGTTOU)
		a.Foreground, a.Ctty = true, int(t.in.Fd())
	}
	return a
}

// started ends what attributes began.
func (t terminal) started() {
	if t.ours {
		signal.Reset(syscall.SIGTTOU)
	}
}

// of says whether the terminal is a group's.
func (t terminal) of(group int) bool {
	var owner int32
	return t.in != nil && ioctl(t.in, syscall.TIOCGPGRP, &owner) == nil && int(owner) == group
}

// takeBack makes the terminal relock's again, if it is the command's: a script that ran it
// may go on to read.
func (t terminal) takeBack(from int) { t.pass(from, syscall.Getpgrp()) }

// give makes it the command's, if it is relock's.
func (t terminal) give(to int) { t.pass(syscall.Getpgrp(), to) }

func (t terminal) pass(from, to int) {
	if !t.of(from) {
		return
	}
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	group := int32(to)
	_ = ioctl(t.in, syscall.TIOCSPGRP, &group) // fails where the terminal has gone
}

func ioctl(f *os.File, request uintptr, group *int32) error {
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, uintptr(unsafe.Pointer(group)))
	if errno != 0 {
		return errno
	}
	return nil
}

// colored says whether out may get escape codes: it is a terminal that knows
// them, and nobody has said that they are not wanted.
func colored(out io.Writer, env []string) bool {
	return lookup(env, "NO_COLOR") == "" && lookup(env, "TERM") != "dumb" && isTerminal(out)
}

func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
