package clock

import (
	"syscall"
	"time"
	"unsafe"
)

// clockBoottime is CLOCK_BOOTTIME: CLOCK_MONOTONIC plus the time spent suspended.
const clockBoottime = 7

// hasBoottime is decided once, so that readings of two different clocks are never compared. A sandbox may
// refuse the system call or not know the clock.
var hasBoottime = func() bool {
	_, ok := boottime()
	return ok
}()

// measure reads the clocks in the order that lead.boot needs.
func measure() (before, boot, after time.Duration) {
	before = time.Since(origin)
	boot, _ = boottime()
	return before, boot, time.Since(origin)
}

// sinceBoot reads the clock that counts suspended time, and measures its lead. The other clocks have just shown t.
func sinceBoot(l *lead, t time.Time) time.Duration {
	if !hasBoottime {
		return wall()
	}
	return l.boot(t.Sub(origin), time.Duration(t.UnixNano()), measure)
}

// boottime reads CLOCK_BOOTTIME, and reports whether the system has it. The system call is raw: it never blocks, so
// Go's scheduler need not know of it.
func boottime() (time.Duration, bool) {
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&ts)), 0)
	return time.Duration(ts.Nano()), errno == 0
}
