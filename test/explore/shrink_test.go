package explore_test

import (
	"regexp"
	"slices"
	"testing"
	"time"
)

var digits = regexp.MustCompile(`[0-9]+`)

// sort is what is wrong without the numbers and names in it: what a shorter
// schedule has to show as well.
func (o outcome) sort() string {
	text := nonceText.ReplaceAllString(o.wrong, "#")
	text = digits.ReplaceAllString(text, "#")
	return text[:min(len(text), 28)]
}

// shrink drops steps from a schedule, and makes numbers smaller, while what is
// wrong stays the same sort of thing.
func shrink(t *testing.T, s schedule, limit time.Duration) (schedule, outcome) {
	t.Helper()
	began := time.Now()
	best := explore(t, s, false)
	if best.wrong == "" {
		return s, best
	}
	try := func(c schedule) bool {
		if len(c) == 0 || time.Since(began) > limit {
			return false
		}
		o := explore(t, c, false)
		if o.wrong == "" || o.sort() != best.sort() {
			return false
		}
		s, best = c, o
		return true
	}
	for again := true; again; {
		again = false
		for size := max(len(s)/2, 1); size > 0; size /= 2 {
			for from := 1; from < len(s); {
				if c := slices.Delete(slices.Clone(s), from, min(from+size, len(s))); try(c) {
					again = true
				} else {
					from += size
				}
			}
		}
		for i := 1; i < len(s); i++ {
			c := slices.Clone(s)
			if c[i] %= stepBase; c[i] != s[i] && try(c) {
				again = true
			}
		}
	}
	return s, best
}
