package clock

import (
	"syscall"
	"time"
	"unsafe"
)

// clockBoottime is CLOCK_BOOTTIME: CLOCK_MONOTONIC plus the time spent suspended.
const clockBoottime = 7

// hasBoottime is decided once, so that readings of two different clocks are
// never compared. A sandbox may refuse the system call or not know the clock.
var hasBoottime = func() bool {
	_, ok := boottime()
	return ok
}()

// sinceBoot returns the reading of a clock that counts suspended time.
func sinceBoot() time.Duration {
	if !hasBoottime {
		return wall()
	}
	d, _ := boottime()
	return d
}

// boottime makes the raw call: it never blocks, so the scheduler need not be told.
func boottime() (time.Duration, bool) {
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&ts)), 0)
	return time.Duration(ts.Nano()), errno == 0
}
