//go:build !linux

package redistest

import "testing"

// AwaitStopped does nothing here: a process that is slow to obey SIGSTOP may do what it is told next.
func AwaitStopped(testing.TB, int) {}
