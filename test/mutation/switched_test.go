package mutation_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/relock-go/relock/test/mutation"
)

// switched is a copy of the module that leaves out the rule that its environment names. So the tests of each folder
// are built once, and not once for each rule.
type switched struct {
	mutated
	rules map[int]bool // that it can leave out

	binaries memo[string]        // by folder
	passing  memo[time.Duration] // by test: how long it takes with all rules; 0: it fails
}

// memo keeps the result of one function for each key.
type memo[V any] struct{ of sync.Map }

func (m *memo[V]) get(key string, fn func() V) V {
	once, _ := m.of.LoadOrStore(key, sync.OnceValue(fn))
	return once.(func() V)()
}

func newSwitched(t *testing.T, rules []mutation.Rule) *switched {
	t.Helper()
	s := &switched{mutated: mutated{dir: t.TempDir(), folders: everyTest(t)}}
	copyModule(t, s.dir)
	files, can, err := mutation.Switched(mutation.NewCode(os.DirFS(s.dir)), rules)
	if err != nil {
		t.Fatal(err)
	}
	s.rules = can
	putAll(t, s.dir, files)
	return s
}

func putAll(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// without leaves out rule n, and reports whether each of its tests fails then, and passes otherwise. If not, the rule
// has to be taken out in a build of its own, which says why.
func (s *switched) without(t *testing.T, n int, m mutation.Rule) bool {
	t.Helper()
	if !s.rules[n] {
		return false
	}
	for _, test := range m.Tests {
		folder := folderOf(s.folders, test)
		if slices.Contains(measured, folder) {
			return false
		}
		bin := s.binaries.get(folder, func() string { return s.build(t, folder, "switched") })
		took := s.passing.get(test, func() time.Duration {
			began := time.Now()
			if _, err := s.run(t, bin, folder, test); err != nil {
				return 0
			}
			return time.Since(began)
		})
		if took == 0 {
			return false
		}
		// Without its rule many a loop has no end.
		out, err := s.runWithin(t, 30*time.Second+10*took, bin, folder, test, fmt.Sprintf("%s=%d", mutation.SwitchEnv, n))
		if err == nil || !failedItself(out, test) {
			return false
		}
	}
	return true
}

// program says what each of its parts does, in one line.
var program = fstest.MapFS{
	"go.mod": {Data: []byte("module m\n\ngo 1.24\n")},
	"main.go": {Data: []byte(`package main

import (
	"fmt"
	"io/fs"
	"m/lua"
)

const limit = 3

type box[T any] struct{ v T }

func (b box[T]) get() T { return b.v }

func (box[T]) name(string, int) string { // unnamed
	return "box"
}

func sum(a int, _ string, rest ...int) int { return a + len(rest) }

func both[A, B any](a A, b B) (x A, err error) {
	x = a
	return x, nil
}

func say() { fmt.Print("said ") }

func safe() (s string) {
	defer func() { s = fmt.Sprint(recover()) }()
	panic("safe")
}

func main() {
	say()
	x, _ := both(1, "b")
	text, _ := fs.ReadFile(lua.FS, "s.lua")
	fmt.Print(box[int]{2}.get(), " ", box[int]{2}.name("", 0), " ", sum(1, "", 2, 3), " ", x, " ", limit, " ", safe(), " ", string(text))
}
`)},
	"lua/lua.go": {Data: []byte("package lua\n\nimport \"embed\"\n\nconst Layout = \"1\"\n\n//go:embed *.lua\nvar FS embed.FS\n")},
	"lua/s.lua":  {Data: []byte("return 1")},
}

var programRules = []mutation.Rule{
	{In: ". say", Old: "fmt.Print($x)", New: ""},
	{In: ". box.get", Old: "b.v", New: "*new(T)"},
	{In: ". box.name", Old: `"box"`, New: `"bag"`},
	{In: ". sum", Old: "a + len(rest)", New: "a - len(rest)"},
	{In: ". both", Old: "x = a", New: ""},
	{In: "lua/s.lua", Old: "1", New: "2"},
	{In: ". sum", Old: "a + len(rest)", New: "a"},
	{In: ". limit", Old: "3", New: "4"},       // no function
	{In: ". safe", Old: "panic($x)", New: ""}, // recover must be called by the deferred function
}

// withoutRule is what the program says without each of the rules that one build can leave out.
var withoutRule = []string{
	"2 box 3 1 3 safe return 1", "said 0 box 3 1 3 safe return 1", "said 2 bag 3 1 3 safe return 1",
	"said 2 box -1 1 3 safe return 1", "said 2 box 3 0 3 safe return 1", "said 2 box 3 1 3 safe return 2", "said 2 box 1 1 3 safe return 1",
}

func TestOneBuildLeavesOutEachRuleByItsNumber(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, program); err != nil {
		t.Fatal(err)
	}
	files, can, err := mutation.Switched(mutation.NewCode(os.DirFS(dir)), programRules)
	if err != nil {
		t.Fatal(err)
	}
	putAll(t, dir, files)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", "m", ".")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	wants := func(without int, want string) {
		run := exec.CommandContext(t.Context(), filepath.Join(dir, "m"))
		run.Env = append(os.Environ(), fmt.Sprintf("%s=%d", mutation.SwitchEnv, without))
		if out, err := run.CombinedOutput(); err != nil || string(out) != want {
			t.Errorf("without rule %d it says %q, %v, want %q", without, out, err, want)
		}
	}
	wants(-1, "said 2 box 3 1 3 safe return 1")
	for n := range programRules {
		if can[n] != (n < len(withoutRule)) {
			t.Errorf("rule %d can be left out: %v", n, can[n])
		} else if can[n] {
			wants(n, withoutRule[n])
		}
	}
}
