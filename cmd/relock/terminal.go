//go:build unix

package main

import (
	"io"
	"os"
	"os/signal"
	"syscall"
	"unsafe"
)

// A terminal is the one that the command is to have while it runs. Its process
// group is its own, so without that a command that asks the user something
// would be stopped like a job in the background. The zero terminal is none.
type terminal struct{ in *os.File }

// terminalOf returns the terminal that in is, if relock itself has it now: one
// that runs in the background must not take it from the foreground.
func terminalOf(in io.Reader) terminal {
	f, ok := in.(*os.File)
	if !ok {
		return terminal{}
	}
	var owner int32
	if err := ioctl(f, syscall.TIOCGPGRP, &owner); err != nil || int(owner) != syscall.Getpgrp() {
		return terminal{}
	}
	return terminal{f}
}

// attributes of a command that gets a process group of its own, and the terminal.
func (t terminal) attributes() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(a)
	if t.in != nil {
		// The new group asks for the terminal from the background, which stops
		// whoever does not ignore this signal; so does relock in takeBack.
		signal.Ignore(syscall.SIGTTOU)
		a.Foreground, a.Ctty = true, int(t.in.Fd())
	}
	return a
}

// takeBack makes the terminal relock's again: a script that ran it may go on to read.
func (t terminal) takeBack() {
	if t.in == nil {
		return
	}
	group := int32(syscall.Getpgrp())
	_ = ioctl(t.in, syscall.TIOCSPGRP, &group) // fails where the terminal has gone
	signal.Reset(syscall.SIGTTOU)
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
	f, ok := out.(*os.File)
	if !ok || lookup(env, "NO_COLOR") != "" || lookup(env, "TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
