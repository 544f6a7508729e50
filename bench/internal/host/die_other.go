//go:build !linux

package host

import "os/exec"

// dieWithParent does nothing here: only Linux ties a child's life to its parent's.
func dieWithParent(*exec.Cmd) {}
