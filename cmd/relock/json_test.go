//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A form is what the documentation says of an object: its fields, with the form of the
// objects in a list, or the values that a text may have.
type form map[string]struct {
	inner  form
	values []string
}

var (
	jsonRow   = regexp.MustCompile(`(?m)^\| (.+) \| .+ \| (.+) \|$`)
	jsonField = regexp.MustCompile("`([a-z_]+)`(?: \\(([^)]*)\\))?")
	quoted    = regexp.MustCompile("`([^`]+)`")
)

// documented are the forms of docs/operations.md, by what the first column says.
func documented(t *testing.T) (forms map[string]form) {
	t.Helper()
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(page), "### JSON\n")
	part, _, _ = strings.Cut(part, "\n## ")
	forms = map[string]form{}
	for _, row := range jsonRow.FindAllStringSubmatch(part, -1)[1:] { // below the head
		if like, is := strings.CutPrefix(row[2], "as "); is {
			forms[row[1]] = forms[like]
			continue
		}
		forms[row[1]] = fieldsOf(row[2], forms["`info`"])
	}
	return forms
}

// fieldsOf reads "`a`, `b` (of `c`, `d`), `e` (as `info`), `g` (those of `info`), `f` (`one`, `other`)".
func fieldsOf(text string, info form) form {
	f := form{}
	for _, m := range jsonField.FindAllStringSubmatch(text, -1) {
		one := f[m[1]]
		switch inner, says := m[2], strings.Trim(m[2], "`"); {
		case strings.HasPrefix(inner, "of "):
			one.inner = fieldsOf(inner, info)
		case inner == "as `info`":
			one.inner = info
		case inner == "those of `info`":
			one.inner = info["holders"].inner
		case says != inner:
			for _, v := range quoted.FindAllStringSubmatch(inner, -1) {
				one.values = append(one.values, v[1])
			}
		}
		if m[1] == "mode" {
			one.values = []string{"lock", "read", "write"} // as it says above the table
		}
		f[m[1]] = one
	}
	return f
}

// is compares one object, and says what is otherwise.
func (f form) is(t *testing.T, who string, object map[string]any) {
	t.Helper()
	for name, value := range object {
		want, known := f[name]
		if !known {
			t.Errorf("%s: %s is not documented", who, name)
		}
		if n, number := value.(json.Number); strings.HasSuffix(name, "_ms") && (!number || strings.ContainsAny(n.String(), ".e")) {
			t.Errorf("%s: %s is %v, want whole milliseconds", who, name, value)
		}
		if text, is := value.(string); want.values != nil && (!is || !slices.Contains(want.values, text)) {
			t.Errorf("%s: %s is %v, want one of %q", who, name, value, want.values)
		}
		list, is := value.([]any)
		if is != (want.inner != nil) || is && len(list) == 0 {
			t.Errorf("%s: %s is %v, want objects of %d fields in it, or none documented", who, name, value, len(want.inner))
		}
		for _, one := range list {
			inner, _ := one.(map[string]any)
			want.inner.is(t, who+", "+name, inner)
		}
	}
	for name := range f {
		if _, there := object[name]; !there {
			t.Errorf("%s: there is no %s", who, name)
		}
	}
}

// objects are one in each line.
func objects(t *testing.T, text string) (all []map[string]any) {
	t.Helper()
	for line := range strings.Lines(text) {
		var object map[string]any
		in := json.NewDecoder(bytes.NewReader([]byte(line)))
		in.UseNumber()
		if err := in.Decode(&object); err != nil {
			t.Fatalf("%v: %q", err, line)
		}
		all = append(all, object)
	}
	return all
}

// written are objects of each command, by the row that documents them.
func (w *world) written() map[string][]map[string]any {
	w.Helper()
	says := func(args ...string) []map[string]any {
		_, out, complaint := w.relock(append([]string{"-json"}, args...)...)
		return objects(w.T, out+complaint)
	}
	lost := w.start("run", "-json", "-ttl", soon, "lost", "--", "sh", "-c", "echo started; exec sleep 30")
	lost.want("started")
	forced := says("unlock", "lost", "-force")
	lost.wantStatus(exitLost)
	waited := says("run", "-wait", "1.5", "x", "true")
	return map[string][]map[string]any{
		"`info`": says("info", "x"), "`ls`": says("ls", "x"), "`top`": says("top", "-looks", "1"),
		"`waiters`": says("waiters", "x"), "`unlock`": forced, "`doctor`": says("doctor", "-watch", "0"),
		"`hold`": says("hold", "free", "-for", ".01"), "`wait`": says("wait", "free"),
		"`run`, `hold`: a wait, on standard error": waited[:1],
		"any other note, on standard error":        objects(w.T, lost.complain.String())[:1],
		"`version`":                                says("version"), "any that fails": says("info", ""),
		"`run`, `hold`, `wait`: not acquired, on standard error": waited[1:],
	}
}

// Whoever reads these by a program is broken by a name that changes.
func TestJSONHasTheFormThatTheDocumentationSays(t *testing.T) {
	w := newWorld(t)
	h := w.hold("x")
	waits := w.start("run", "x", "true")
	w.waitForQueue("x", 1)
	forms, written := documented(t), w.written()
	for row, f := range forms {
		if len(written[row]) == 0 {
			t.Errorf("nothing was written of what is documented of %s", row)
		}
		for _, object := range written[row] {
			f.is(t, row, object)
		}
	}
	for row := range written {
		if forms[row] == nil {
			t.Errorf("%s is not documented", row)
		}
	}
	if err := h.Release(); err != nil {
		t.Error(err)
	}
	waits.wantStatus(0)
}

// Fails when a program that reads JSON finds plain text.
func TestACommandThatCannotBeStartedIsToldInJSON(t *testing.T) {
	w := newWorld(t)
	status, _, complaint := w.relock("run", "-json", "x", "--", "./no-such-file")
	var told struct {
		Error  string
		Status int
	}
	if err := json.Unmarshal([]byte(complaint), &told); err != nil || status != exitNotFound || told.Status != status || told.Error == "" {
		t.Errorf("status %d, %q: %v", status, complaint, err)
	}
}

func TestAWrongFlagIsToldInJSONWhereverJSONStands(t *testing.T) {
	w := newWorld(t)
	for _, args := range [][]string{
		{"run", "-json", "-ttl", "soon", "x", "true"},
		{"run", "-ttl", "soon", "-json", "x", "true"},
		{"-json", "-nosuch", "ls"},
		{"-nosuch", "ls", "-json"},
		{"-nosuch", "-prefix", "p", "run", "--json", "x", "true"},
		{"nosuch", "x", "y", "-json"},
	} {
		if status, _, complaint := w.relock(args...); status != exitUsage || !strings.HasPrefix(complaint, `{"error":`) {
			t.Errorf("%q: status %d, %q", args, status, complaint)
		}
	}
	for _, args := range [][]string{
		{"run", "-ttl", "soon", "x", "true", "-json"},
		{"run", "-ttl", "soon", "--", "-json", "true"},
		{"run", "-ttl", "soon", "-wait", "-json", "x", "true"},
	} {
		if status, _, complaint := w.relock(args...); status != exitUsage || !strings.HasPrefix(complaint, "relock: ") {
			t.Errorf("%q: status %d, %q, want plain text: -json is no flag of relock there", args, status, complaint)
		}
	}
}
