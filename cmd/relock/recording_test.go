//go:build unix

package main

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// recording is the page that shows what the demo prints; make record writes it anew, by
// this variable.
const (
	recording = "../../docs/demo.txt"
	recordEnv = "RELOCK_RECORD"
)

var (
	elapsed   = regexp.MustCompile(`(?m)^ +(\d+\.\d\d)s  `)
	timeTaken = regexp.MustCompile(`\b\d+(?:\.\d+)?(?:µs|ms|s)\b`)
	bigNumber = regexp.MustCompile(`\b\d{12,}\b`)
	processID = regexp.MustCompile(`/(\d+)( +)`)
	loopback  = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	number    = regexp.MustCompile(`\d+`)
	stall     = regexp.MustCompile(`, and the machine stalled for \S+`) // of a machine that is busy
	letter    = regexp.MustCompile(`\b[A-D]\b`)
)

// recorded is an output without what differs between runs and machines: times to a tenth
// of a second, tokens and processes by small numbers that say which is the same and which is larger.
func recorded(out string) string {
	out = stall.ReplaceAllString(out, "")
	out = loopback.ReplaceAllString(out, "127.0.0.1:6379")
	out = elapsed.ReplaceAllStringFunc(out, func(s string) string {
		t, _ := strconv.ParseFloat(elapsed.FindStringSubmatch(s)[1], 64)
		return fmt.Sprintf("%6.1fs  ", t)
	})
	tokens := slices.Compact(slices.Sorted(slices.Values(bigNumber.FindAllString(out, -1))))
	out = bigNumber.ReplaceAllStringFunc(out, func(s string) string { return strconv.Itoa(slices.Index(tokens, s) + 1) })
	var processes []string
	return strings.TrimLeft(processID.ReplaceAllStringFunc(out, func(s string) string {
		m := processID.FindStringSubmatch(s)
		if !slices.Contains(processes, m[1]) {
			processes = append(processes, m[1])
		}
		id := strconv.Itoa(slices.Index(processes, m[1]) + 1)
		return "/" + id + strings.Repeat(" ", len(m[1])+len(m[2])-len(id))
	}), "\n")
}

// shapes are the kinds of lines in each scene, whoever comes first, however often and whenever.
func shapes(out string) map[string]bool {
	all, scene := map[string]bool{}, ""
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\n")
		if line != "" && line[0] != ' ' {
			scene = strings.Join(strings.Fields(number.ReplaceAllString(line, "N")), " ")
		}
		line = letter.ReplaceAllString(timeTaken.ReplaceAllString(line, "T"), "X")
		all[scene+" | "+strings.Join(strings.Fields(number.ReplaceAllString(line, "N")), " ")] = true
	}
	return all
}

// asRecorded compares what the demo has printed with the recording, or makes it one.
func asRecorded(t *testing.T, out string) {
	t.Helper()
	if os.Getenv(recordEnv) == "1" {
		if err := os.WriteFile(recording, []byte(recorded(out)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range different(read(t, recording), recorded(out)) {
		t.Errorf("%s; make record makes docs/demo.txt anew", line)
	}
}

func different(page, out string) (lines []string) {
	there, now := shapes(page), shapes(out)
	for _, line := range slices.Sorted(maps.Keys(there)) {
		if !now[line] {
			lines = append(lines, "docs/demo.txt shows what the demo does not print: "+line)
		}
	}
	for _, line := range slices.Sorted(maps.Keys(now)) {
		if !there[line] {
			lines = append(lines, "the demo prints what docs/demo.txt does not show: "+line)
		}
	}
	return lines
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestRecordingIsOfNoRunAlone(t *testing.T) {
	one := "\nrelock demo, at 127.0.0.1:44309\n\n1. Scene\n   0.04s  A/29508   is ready\n   0.13s  A/29508   counted 1  token 1795372634896358\n   0.19s  B/7       counted 2  token 1795372634910216\n  ✓ left: in 900µs after A, B\n"
	two := "\nrelock demo, at 127.0.0.1:1\n\n1. Scene\n   0.98s  B/12345   is ready\n   1.13s  B/12345   counted 1  token 1895372634896358\n   1.19s  A/12346   counted 2  token 1895372634910216\n  ✓ left: in 1.2s after B, A\n"
	want := "relock demo, at 127.0.0.1:6379\n\n1. Scene\n   0.0s  A/1       is ready\n   0.1s  A/1       counted 1  token 1\n   0.2s  B/2       counted 2  token 2\n  ✓ left: in 900µs after A, B\n"
	if got := recorded(one); got != want {
		t.Errorf("the recording is\n%s, want\n%s", got, want)
	}
	if got := different(recorded(one), recorded(two)); len(got) > 0 {
		t.Errorf("another run differs: %q", got)
	}
	for _, other := range []string{"is late", "is ready: now"} {
		if got := different(recorded(one), recorded(strings.Replace(two, "is ready", other, 1))); len(got) != 2 {
			t.Errorf("%q for what is recorded: got %q, want what is gone and what is new", other, got)
		}
	}
}
