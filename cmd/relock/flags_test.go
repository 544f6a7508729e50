//go:build unix

package main

import (
	"testing"
	"time"
)

// Seconds were cut off to whole nanoseconds: 2.01 was a nanosecond less, which is no lease.
func TestSecondsWithoutAUnitAreWhatTheySay(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"90": 90 * time.Second, "2.01": 2010 * time.Millisecond, "1.001": 1001 * time.Millisecond, "2.01s": 2010 * time.Millisecond,
		"-2.01": -2010 * time.Millisecond, "0.000000001": 1, "0": 0, "1e9": 1e9 * time.Second, "-1e9": -1e9 * time.Second,
	} {
		var s span
		if err := s.Set(text); err != nil || time.Duration(s) != want {
			t.Errorf("%s: %d ns, %v, want %d ns", text, time.Duration(s), err, want)
		}
	}
	for _, text := range []string{"nan", "inf", "-inf", "1e10", "-1e10", "1e300", "soon", ""} {
		var s span
		if err := s.Set(text); err == nil || s != 0 {
			t.Errorf("%q: %d ns, %v, want that it is refused", text, time.Duration(s), err)
		}
	}
	if status, out, complaint := newWorld(t).relock("run", "-ttl", "2.01", "x", "echo", "started"); status != 0 || out != "started\n" {
		t.Errorf("-ttl 2.01: status %d, %q, complaint %q", status, out, complaint)
	}
}
