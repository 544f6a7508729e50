package clock

import "time"

// wall replaces a clock that counts suspended time on systems without one. It is set by hand and by NTP. A
// step forward looks like elapsed time, and ends trust early: the harmless direction. A step back is caught
// by the monotonic clock. The exception is a step back by exactly the time that the machine has just been
// suspended.
func wall() time.Duration { return time.Duration(time.Now().UnixNano()) }
