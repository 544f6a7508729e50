//go:build unix

package main

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
)

// yieldSignals are the signals that -yield knows, by name.
var yieldSignals = map[string]syscall.Signal{
	"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "QUIT": syscall.SIGQUIT, "TERM": syscall.SIGTERM,
	"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "WINCH": syscall.SIGWINCH,
}

// A yield is the signal that the command gets when another run waits for its lock. 0: none.
type yield syscall.Signal

func (y *yield) String() string {
	for name, s := range yieldSignals {
		if syscall.Signal(*y) == s {
			return name
		}
	}
	return ""
}

func (y *yield) Set(text string) error {
	s, known := yieldSignals[strings.TrimPrefix(strings.ToUpper(text), "SIG")]
	if !known {
		names := make([]string, 0, len(yieldSignals))
		for name := range yieldSignals {
			names = append(names, name)
		}
		slices.Sort(names)
		return fmt.Errorf("must be one of %s", strings.Join(names, ", "))
	}
	*y = yield(s)
	return nil
}
