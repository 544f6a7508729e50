package house_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sleep is a call or a mention as a function.
var sleep = regexp.MustCompile(`\btime\.Sleep\b`)

// Tests sleep by virtual.Sleep, which fails outside of a bubble.
func TestTestsSleepInVirtualTimeOnly(t *testing.T) { report(t, realSleeps(everyFile(t))) }

func realSleeps(files map[string]string) (problems []string) {
	for name, text := range files {
		switch {
		case !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "internal/rig/"):
		case sleep.MatchString(text):
			problems = append(problems, name+": use virtual.Sleep, which fails where a test waits in real time")
		}
	}
	slices.Sort(problems)
	return problems
}

func TestSleepRuleCanFail(t *testing.T) {
	const naps = "func nap() { time" + ".Sleep(1) }" // in two pieces: this file is a test too
	if got := realSleeps(map[string]string{"a.go": naps}); len(got) > 0 {
		t.Errorf("refused: %q", got)
	}
	if got := realSleeps(map[string]string{"a_test.go": naps, "example_test.go": naps, "internal/rig/lab.go": naps}); len(got) != 3 {
		t.Errorf("got %q, want three", got)
	}
}
