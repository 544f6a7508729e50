package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestEachPartThatCanBeTakenOutGetsASwitch(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`if a {}`, `if (!switches.On(0) && (a)) {}`},
		{`if a && !b {}`, `if (!switches.On(0) && ((switches.On(1) || (a)) && (switches.On(2) || (!b)))) {}`},
		{`c = a || b`, `if !switches.On(0) { c = (!switches.On(1) && (a)) || (!switches.On(2) && (b)) }`},
		{`switch { case a: f() }`, `switch { case (!switches.On(0) && (a)): if !switches.On(1) { f() } }`},
		{`switch n { case 1: n++ }`, `switch n { case 1: if !switches.On(0) { n++ } }`},
		{`defer f()`, `if !switches.On(0) { defer f() }`},
		{`ch <- n`, `if !switches.On(0) { ch <- n }`},
		{`mu.Lock(); defer mu.Unlock()`, `mu.Lock(); defer mu.Unlock()`},
		{`c := a; _ = c; panic(n)`, `c := a; _ = c; panic(n)`},
		{`func() { f() }()`, `if !switches.On(0) { func() { if !switches.On(1) { f() } }() }`},
	} {
		in := &instrument{switches: "m/internal/switches"}
		out, err := in.file("x.go", []byte("package x\n\nfunc (t *T) do() {\n"+c.body+"\n}\n"))
		if err != nil {
			t.Fatal(err)
		}
		_, body, _ := strings.Cut(string(out), "do() {\n")
		if body = strings.TrimSuffix(body, "\n}\n"); body != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.body, body, c.want)
		}
		if imports := strings.Contains(string(out), `import switches "m/internal/switches"`); imports != (body != c.body) {
			t.Errorf("%s: imports the switches: %v", c.body, imports)
		}
		if len(in.changes) > 0 && (in.changes[0].Func != "T.do" || in.changes[0].Place != "x.go:4") {
			t.Errorf("%s: %+v", c.body, in.changes[0])
		}
	}
}

func TestAChangeThatNoTestNoticesIsFound(t *testing.T) {
	module := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.26\n",
		"m.go": `package m

func Abs(n int) int {
	if n < 0 || n == 0 {
		return -n
	}
	return n
}

func Unused(n *int) { *n++ }
`,
		"m_test.go": `package m

import "testing"

func TestAbs(t *testing.T) {
	for _, n := range []int{-1, 0, 1} {
		if Abs(n) < 0 {
			t.Error(n)
		}
	}
}
`,
	} {
		if err := os.WriteFile(filepath.Join(module, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(module)
	s := &search{folders: []string{"."}, packages: []string{"./..."}, limit: time.Minute, most: time.Minute, log: t.Output()}
	results, err := s.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range results {
		got = append(got, string(r.verdict)+": "+r.Kind+" "+r.Text)
	}
	slices.Sort(got)
	want := []string{"noticed: never n < 0 || n == 0", "noticed: without n < 0", "passed: without n == 0", "unreached: skip *n++"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
