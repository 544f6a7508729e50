//go:build unix && !linux

package main

import "syscall"

// dieWithParent does nothing: this kernel has no such service.
func dieWithParent(*syscall.SysProcAttr) {}
