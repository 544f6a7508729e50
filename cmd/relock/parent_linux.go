package main

import "syscall"

// dieWithParent makes the kernel kill the command when relock is killed. Otherwise the command would go on
// while nothing renews the lock.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
