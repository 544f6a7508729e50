//go:build unix

package main

import (
	"io"
	"os"
	"os/signal"
	"syscall"
	"unsafe"
)

// A terminal is relock's controlling terminal, which it passes to the command. The command has its own process group.
// The terminal stops a group in the background that reads from it or sets it. The zero value is no terminal.
type terminal struct {
	tty   *os.File
	input bool // it is the command's input
	first bool // the command gets it at its start
}

// terminalOf returns relock's terminal, if it has one. A relock in the background must not take it for its command. Nor
// must a relock whose output another program reads, for example a pager: that would be stopped when it needs the
// terminal, and relock with it. A command that needs the terminal later gets it then (child.suspend).
func terminalOf(in io.Reader, out io.Writer) terminal {
	f, isFile := in.(*os.File)
	if t := (terminal{tty: f, input: true}); isFile && t.owner() != 0 {
		t.first = t.of(syscall.Getpgrp()) && (!hearsStops || !isPipe(out))
		return t
	}
	f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return terminal{}
	}
	return terminal{tty: f}
}

// close gives the terminal back if the group from has it, and closes what terminalOf has opened.
func (t terminal) close(from int) {
	t.takeBack(from)
	if t.tty != nil && !t.input {
		_ = t.tty.Close()
	}
}

// reclaim is close for a command that could not be started, and whose group may have the terminal already.
func (t terminal) reclaim() {
	from := 0
	if t.first {
		from = t.owner()
	}
	t.close(from)
}

// attributes returns the attributes of a command with its own process group and the terminal.
func (t terminal) attributes() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(a)
	if t.first {
		// The new group takes the terminal from the background. That stops a process that does not ignore
		// this signal. The same holds for relock in takeBack.
		signal.Ignore(syscall.SIGTTOU)
		a.Foreground, a.Ctty = true, int(t.tty.Fd())
	}
	return a
}

// started undoes what attributes changed for the start.
func (t terminal) started() {
	if t.first {
		signal.Reset(syscall.SIGTTOU)
	}
}

// owner returns the process group to which the terminal belongs, or 0 if there is no terminal.
func (t terminal) owner() int {
	var group int32
	if t.tty == nil || ioctl(t.tty, syscall.TIOCGPGRP, &group) != nil {
		return 0
	}
	return int(group)
}

// of reports whether the terminal belongs to a group.
func (t terminal) of(group int) bool { return group != 0 && t.owner() == group }

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
	_ = ioctl(t.tty, syscall.TIOCSPGRP, &group) // fails if the terminal has gone
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

func isTerminal(out io.Writer) bool { return fileMode(out)&os.ModeCharDevice != 0 }

// isPipe reports whether out is a pipe or a socket, which another program reads.
func isPipe(out io.Writer) bool { return fileMode(out)&(os.ModeNamedPipe|os.ModeSocket) != 0 }

func fileMode(out io.Writer) os.FileMode {
	f, ok := out.(*os.File)
	if !ok {
		return 0
	}
	info, err := f.Stat()
	if err != nil {
		return 0
	}
	return info.Mode()
}
