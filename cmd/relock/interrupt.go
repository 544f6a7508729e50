//go:build unix

package main

import (
	"os/signal"
	"syscall"
	"time"
)

// An interrupt says whether SIGINT has ended a command, or relock's own wait. Then relock dies of that signal as well:
// shells and make go on after a program that exits with 130, and stop after one that died of SIGINT.
type interrupt int

const (
	uninterrupted interrupt = iota
	ofRelock                // by a signal that relock has heard, or that somebody has sent to the command alone
	ofJob                   // at a terminal that the command had: the rest of relock's job has not heard of it
)

// die ends relock, and for ofJob its process group, by SIGINT. It returns if that signal is ignored.
func (i interrupt) die() {
	if i == uninterrupted || signal.Ignored(syscall.SIGINT) {
		return
	}
	to := syscall.Getpid()
	if i == ofJob {
		to = 0
	}
	signal.Reset(syscall.SIGINT)
	_ = syscall.Kill(to, syscall.SIGINT)
	time.Sleep(time.Second) // another thread may take the signal
}
