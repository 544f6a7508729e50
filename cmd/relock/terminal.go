//go:build unix

package main

import (
	"io"
	"os"
	"os/signal"
	"syscall"
	"unsafe"
)

// A terminal is relock's terminal, which it passes to the command. The command has its own process group.
// Without the terminal, a command that asks the user something would be stopped like a job in the background.
// The zero value is no terminal.
type terminal struct {
	in   *os.File
	ours bool // at the first look; a relock in the background must not take it
}

// terminalOf returns in as a terminal, if it is one.
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

// attributes returns the attributes of a command with its own process group and the terminal.
func (t terminal) attributes() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(a)
	if t.ours {
		// The new group takes the terminal from the background. That stops a process that does not ignore
		// this signal. The same holds for relock in takeBack.
		signal.Ignore(syscall.SIGTTOU)
		a.Foreground, a.Ctty = true, int(t.in.Fd())
	}
	return a
}

// started undoes what attributes changed for the start.
func (t terminal) started() {
	if t.ours {
		signal.Reset(syscall.SIGTTOU)
	}
}

// of reports whether the terminal belongs to a group.
func (t terminal) of(group int) bool {
	var owner int32
	return t.in != nil && ioctl(t.in, syscall.TIOCGPGRP, &owner) == nil && int(owner) == group
}

// takeBack gives the terminal back to relock if the command has it, because a script that runs relock may go
// on to read.
func (t terminal) takeBack(from int) { t.pass(from, syscall.Getpgrp()) }

// give gives the terminal to the command if relock has it.
func (t terminal) give(to int) { t.pass(syscall.Getpgrp(), to) }

func (t terminal) pass(from, to int) {
	if !t.of(from) {
		return
	}
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	group := int32(to)
	_ = ioctl(t.in, syscall.TIOCSPGRP, &group) // fails if the terminal has gone
}

func ioctl(f *os.File, request uintptr, group *int32) error {
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, uintptr(unsafe.Pointer(group)))
	if errno != 0 {
		return errno
	}
	return nil
}

// colored reports whether out may get escape codes: it is a terminal that knows them, and the user has not
// refused them.
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
