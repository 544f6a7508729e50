package clock

import "time"

// wall stands in for a clock that counts suspended time where the system offers
// none. It is set by hand and by NTP. A step forward makes time seem to have
// passed that has not, which ends trust early: the harmless direction. A step
// back is caught by the monotonic clock beside it, except for a step back by
// the time that the machine has just been suspended.
func wall() time.Duration { return time.Duration(time.Now().UnixNano()) }
