package main

import (
	"os"
	"os/signal"
	"syscall"
	"unsafe"
)

// hearStops asks for the signal that a shell stops relock's own group with, as where its
// input is no terminal and the command not in the foreground.
func hearStops(to chan<- os.Signal) {
	if !signal.Ignored(syscall.SIGTSTP) {
		signal.Notify(to, syscall.SIGTSTP)
	}
}

// letStop lets that signal stop relock again, until heed is called. Once it has been
// asked for, Go goes on to catch it, and drops it where nobody asks any more. SIGSTOP
// will not do: it would stop relock also where nobody is there who could continue it.
func letStop() (heed func()) {
	var was, byDefault [64]byte // a sigaction, which is all zeros for SIG_DFL
	act := func(now, old *[64]byte) {
		_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGTSTP),
			uintptr(unsafe.Pointer(now)), uintptr(unsafe.Pointer(old)), 8, 0, 0)
	}
	act(&byDefault, &was)
	return func() { act(&was, nil) }
}
