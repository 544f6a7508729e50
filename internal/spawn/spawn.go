// Package spawn starts programs that die with this one. Tests and tools use it.
package spawn

import (
	"os/exec"
	"runtime"
)

// Start starts cmd. On Linux the kernel kills the child when this program ends, for whatever reason. exited is closed
// when the child has ended and has been waited for.
//
// The kernel kills a child when the thread that forked it ends. So Start keeps that thread while the child lives.
func Start(cmd *exec.Cmd) (exited <-chan struct{}, err error) {
	dieWithParent(cmd)
	started, gone := make(chan error, 1), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(gone)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	return gone, <-started
}
