//go:build unix

package main

import (
	"os/signal"
	"syscall"
	"time"
)

// An interrupt says whether SIGINT has ended a command, or relock's own wait. Then relock dies of that signal as well. A
// script goes on after a program that exits with 130. It stops if the program died of SIGINT, and its shell has heard that
// signal too.
type interrupt int

const (
	uninterrupted interrupt = iota
	dieAlone                // relock has heard or sent the signal, or the command did not have the terminal
	dieWithJob              // the command had the terminal: the signal is taken for a Ctrl-C, of which relock's job has not heard
)

// die ends relock, and for dieWithJob its process group, by SIGINT. It returns if that signal is ignored.
func (i interrupt) die() {
	if i == uninterrupted || signal.Ignored(syscall.SIGINT) {
		return
	}
	to := syscall.Getpid()
	if i == dieWithJob {
		to = 0
	}
	signal.Reset(syscall.SIGINT)
	_ = syscall.Kill(to, syscall.SIGINT)
	time.Sleep(time.Second) // another thread may take the signal
}
