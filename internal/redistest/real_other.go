//go:build !linux

package redistest

import (
	"os/exec"
	"testing"
)

// dieWithParent does nothing here: only Linux ties a child's life to its parent's.
func dieWithParent(*exec.Cmd) {}

// AwaitStopped does nothing here: a process that is slow to obey SIGSTOP may do
// what it is told next.
func AwaitStopped(testing.TB, int) {}
