package mutation_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/relock-go/relock/test/mutation"
)

// tree is a source tree of two packages.
var tree = fstest.MapFS{
	"a/a.go": {Data: []byte(`package a

import "fmt"

const (
	one = 1 // the first
	two, three = 2, 3
)

// T has a lease.
type T[K comparable, V any] struct { lease int }

func (t *T[K, V]) Get(k K) (int, error) {
	if t.lease == 0 { // expired
		return 0,
			fmt.Errorf("no %v", k)
	}
	return one, nil
}

func Get() int { return one }
`)},
	"a/a_linux.go":   {Data: []byte("package a\n\nfunc place() { here(one) }\n")},
	"a/a_windows.go": {Data: []byte("package a\n\nfunc place() { there(one); here(one) }\n")},
	"a/a_test.go":    {Data: []byte("package a\n\nfunc place() { here(one) }\n")},
	"a/s.lua":        {Data: []byte("return 1 -- one\n")},
	"b/b.go":         {Data: []byte("package b\n\nfunc run() {\n\tdefer f(g(1, 2), 3)\n\tif x := f(); x {\n\t\th(x)\n\t}\n}\n")},
}

// changes takes a rule out, and returns the lines that are new, with the files they are in.
func changes(t *testing.T, in, old, instead string) (lines []string) {
	t.Helper()
	changed, err := mutation.Rule{In: in, Old: old, New: instead}.Without(mutation.NewCode(tree))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		before := strings.Split(string(tree[name].Data), "\n")
		for line := range strings.SplitSeq(changed[name], "\n") {
			if !slices.Contains(before, line) {
				lines = append(lines, name+": "+strings.TrimSpace(line))
			}
		}
	}
	return lines
}

func TestRuleFindsItsCode(t *testing.T) {
	for name, c := range map[string]struct{ in, old, instead, want string }{
		"layout and comments do not count": {"a T.Get", `t.lease==0 { return 0, fmt.Errorf("no %v",k) };`, "false {}", "a/a.go: if false {}"},
		"a method of a generic type":       {"a T.Get", "one, nil", "2, nil", "a/a.go: return 2, nil"},
		"a function beside its namesake":   {"a Get", "one", "2", "a/a.go: func Get() int { return 2 }"},
		"a constant of a group":            {"a one", "1", "7", "a/a.go: one = 7 // the first"},
		"a constant that shares a line":    {"a three", "3", "7", "a/a.go: two, three = 2, 7"},
		"a type":                           {"a T", "lease int", "term int", "a/a.go: type T[K comparable, V any] struct { term int }"},
		"an import":                        {"a import", `"fmt"`, `"log"`, `a/a.go: import "log"`},
		"several declarations":             {"a Get, T.Get", "return one", "return 2", "a/a.go: return 2, nil|a/a.go: func Get() int { return 2 }"},
		"files for every platform":         {"a place", "here(one)", "here(2)", "a/a_linux.go: func place() { here(2) }|a/a_windows.go: func place() { there(one); here(2) }"},
		"one expression":                   {"b run", "f($x, 3)", "k($x)", "b/b.go: defer k(g(1, 2))"},
		"the same expression twice":        {"b run", "if $x := f(); $x {", "if $x := k(); !$x {", "b/b.go: if x := k(); !x {"},
		"a whole body":                     {"b run", "{ $$body }", "{ k(); $$body }", "b/b.go: func run() { k(); defer f(g(1, 2), 3)|b/b.go: } }"},
		"no body":                          {"b run", "func run() { $$body }", "func run() {}", "b/b.go: func run() {}"},
		"text of another file":             {"a/s.lua", "return 1 -- one", "return 2", "a/s.lua: return 2"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(changes(t, c.in, c.old, c.instead), "|"); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// A function that moves keeps its rules.
func TestRuleFollowsAFunctionToAnotherFile(t *testing.T) {
	moved := maps.Clone(tree)
	moved["b/elsewhere.go"] = moved["b/b.go"]
	delete(moved, "b/b.go")
	changed, err := mutation.Rule{In: "b run", Old: "h(x)"}.Without(mutation.NewCode(moved))
	if err != nil || len(changed) != 1 || strings.Contains(changed["b/elsewhere.go"], "h(x)") {
		t.Errorf("got %q, %v", changed, err)
	}
}

func TestRuleThatMatchesNothingSaysWhy(t *testing.T) {
	for name, c := range map[string]struct{ in, old, want string }{
		"no such declaration":      {"a T.Put", "one", "no declaration T.Put in a"},
		"only in tests":            {"a none", "one", "no declaration none in a"},
		"no such folder":           {"c T.Put", "one", "no declaration T.Put in c"},
		"no such code":             {"a Get", "return two", "Get in a does not match: return two"},
		"in one of two":            {"a Get, T.Get", "one, nil", "Get in a does not match: one, nil"},
		"a part of a name":         {"a Get", "on", "does not match"},
		"two different for one":    {"b run", "f(g($x, $x), 3)", "does not match"},
		"a list for an expression": {"b run", "g($x)", "does not match"},
		"nothing":                  {"a Get", "// one", "nothing to take out"},
		"a Go file":                {"a/a.go", "one", "a/a.go is a Go file"},
		"no such file":             {"a/t.lua", "one", "file does not exist"},
		"no such text":             {"a/s.lua", "return 2", "a/s.lua has no such text any more"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := mutation.Rule{In: c.in, Old: c.old}.Without(mutation.NewCode(tree))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}
