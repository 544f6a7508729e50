//go:build !linux

package host

import "time"

func sharpTimers() {}

func sleepUntil(due time.Time) { time.Sleep(time.Until(due)) }
