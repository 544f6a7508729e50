package clock_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/relock-go/relock/internal/clock"
)

// /proc/uptime shows CLOCK_BOOTTIME in hundredths of a second. A container may show its own uptime there, but a
// difference of two readings is the same.
func TestSecondClockRunsWithUptime(t *testing.T) {
	before, ok := uptime()
	if !ok {
		t.Skip("no /proc/uptime")
	}
	a := clock.SinceBoot()
	for begin := time.Now(); time.Since(begin) < 20*time.Millisecond; {
	}
	b := clock.SinceBoot()
	after, _ := uptime()
	if d := b - a; d < 20*time.Millisecond || d > after-before+20*time.Millisecond {
		t.Errorf("second clock advanced %v while uptime advanced %v", d, after-before)
	}
}

func uptime() (time.Duration, bool) {
	text, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return 0, false
	}
	first, _, _ := strings.Cut(string(text), " ")
	s, err := strconv.ParseFloat(first, 64)
	return time.Duration(s * float64(time.Second)), err == nil
}
