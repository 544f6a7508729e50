package main

import (
	"os"
	"os/signal"
	"syscall"
	"unsafe"
)

// hearsStops says that hearStops works here.
const hearsStops = true

// hearStops subscribes to the signal by which a shell stops relock's own group. A shell does that if the
// command does not have the terminal.
func hearStops(to chan<- os.Signal) {
	if !signal.Ignored(syscall.SIGTSTP) {
		signal.Notify(to, syscall.SIGTSTP)
	}
}

// letStop lets that signal stop relock again, until heed is called. Go keeps catching a signal that was once
// subscribed to, and drops it if nobody is subscribed. SIGSTOP is no replacement: it would also stop a relock
// that nobody can continue.
func letStop() (heed func()) {
	var was, byDefault [64]byte // a sigaction; all zeros mean SIG_DFL
	act := func(now, old *[64]byte) {
		_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGTSTP),
			uintptr(unsafe.Pointer(now)), uintptr(unsafe.Pointer(old)), 8, 0, 0)
	}
	act(&byDefault, &was)
	return func() { act(&was, nil) }
}
