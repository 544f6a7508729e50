package clock

import "time"

// wall reads the wall clock. It stands in for a clock that counts suspended time on systems without one. NTP and users
// may set the wall clock. A step forward looks like elapsed time, and only ends trust early. After a step back the
// monotonic clock decides. Only a step back during or after a suspension can hide that suspension.
func wall() time.Duration { return time.Duration(time.Now().UnixNano()) }
