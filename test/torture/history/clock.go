package history

import (
	"syscall"
	"time"
	"unsafe"
)

// boottime is CLOCK_BOOTTIME of Linux.
const boottime = 7

// Now reads the clock of all events.
func Now() int64 {
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, boottime, uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		panic(errno)
	}
	return ts.Nano()
}

// both is one instant on both clocks.
type both struct {
	boot int64
	mono time.Time
}

var base = func() both {
	var both both
	for range 1000 {
		both.boot, both.mono = Now(), time.Now()
		if Now()-both.boot < int64(20*time.Microsecond) {
			break // not interrupted in between
		}
	}
	return both
}()

// At translates a time that has a reading of Go's monotonic clock. A machine
// that was suspended since the program began is beyond it.
func At(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return base.boot + int64(t.Sub(base.mono))
}

// Stall is a Fault that nobody injected: a process, or the servers, did not run
// for a while, as the machine was busy.
const Stall = "stall"

// StallsAfter is how long a silence is noted as one.
const StallsAfter = 100 * time.Millisecond
