//go:build unix && !linux

package main

import "syscall"

// dieWithParent does nothing here: only on Linux do we let the kernel end the command with relock.
func dieWithParent(*syscall.SysProcAttr) {}
