package main

import "syscall"

// dieWithParent has the kernel kill the command when relock is killed: nothing
// then renews the lock, and nobody else would stop the command.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
