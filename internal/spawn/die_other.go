//go:build !linux

package spawn

import "os/exec"

// dieWithParent does nothing here: only on Linux do we let the kernel end a child with its parent.
func dieWithParent(*exec.Cmd) {}
