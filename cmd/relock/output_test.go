//go:build unix

package main

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
)

// fields are those of the only object that a command writes, which has to be a line.
func (w *world) fields(args ...string) (all []string) {
	w.Helper()
	_, out, complaint := w.relock(args...)
	var object map[string]any
	if err := json.Unmarshal([]byte(out+complaint), &object); err != nil {
		w.Fatalf("relock %q: %v: %q %q", args, err, out, complaint)
	}
	for name, value := range object {
		if list, is := value.([]any); is && len(list) > 0 {
			for inner := range list[0].(map[string]any) {
				all = append(all, name+"."+inner)
			}
		}
	}
	return slices.Sorted(slices.Values(append(all, slices.Collect(maps.Keys(object))...)))
}

// Whoever reads these by a program is broken by a name that changes.
func TestJSONHasTheFormThatTheDocumentationSays(t *testing.T) {
	w := newWorld(t)
	h := w.hold("x")
	waits := w.start("run", "x", "true")
	w.waitForQueue("x", 1)
	holder := func(list string) []string {
		return []string{list, list + ".held_ms", list + ".holds", list + ".label", list + ".lease_ms", list + ".mode", list + ".owner", list + ".token"}
	}
	for _, row := range []struct {
		args []string
		want []string
	}{
		{[]string{"info", "-json", "x"}, append(holder("holders"), "kind", "name", "resting_ms", "waiting")},
		{[]string{"-json", "waiters", "x"}, []string{"label", "mode", "name", "owner", "place", "waited_ms"}},
		{[]string{"unlock", "x", "-force", "-json"}, append(holder("removed"), "name", "rested_ms")},
		{[]string{"version", "-json"}, []string{"version"}},
		{[]string{"-json", "info", ""}, []string{"error", "status"}},
	} {
		if got, want := w.fields(row.args...), slices.Sorted(slices.Values(row.want)); !slices.Equal(got, want) {
			t.Errorf("relock %q: fields %q, want %q", row.args, got, want)
		}
	}
	<-h.Lost()
	waits.wantStatus(0)
}

func TestFlagsStandInAnyOrder(t *testing.T) {
	w := newWorld(t)
	for _, args := range [][]string{
		{"run", "-wait", "5", "x", "echo", "-n", "ran"},
		{"run", "x", "-wait", "5", "echo", "-n", "ran"},
		{"run", "x", "-wait=.5", "--", "echo", "-n", "ran"},
		{"-redis", w.url, "run", "-ttl", "30", "x", "-owner", "--", "echo", "-n", "ran"},
		{"-prefix=relock", "-q", "run", "x", "echo", "-n", "ran"},
	} {
		if status, out, complaint := w.relock(args...); status != 0 || out != "ran" || complaint != "" {
			t.Errorf("relock %q: status %d, %q, complaint %q", args, status, out, complaint)
		}
	}
	h := w.hold("x")
	if status, out, _ := w.relock("unlock", "x", "-force"); status != 0 || out == "" {
		t.Errorf("unlock x -force: status %d, %q", status, out)
	}
	<-h.Lost()
}
