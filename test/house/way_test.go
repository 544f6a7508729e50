package house_test

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// TestWayOfALockAndUnlock holds how much a reader of Lock and Unlock has to read, where nobody else wants the lock.
// `make way` shows the functions, file by file.
func TestWayOfALockAndUnlock(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("GOCOVERDIR", dir)
	program, counted := filepath.Join(dir, "way"), filepath.Join(dir, "counted")
	measured := strings.Join([]string{module, module + "/internal/...", module + "/test/house/way"}, ",") // the program, or nothing is counted
	run(t, "go", "build", "-cover", "-covermode=atomic", "-coverpkg="+measured, "-o", program, "./test/house/way")
	rig.Must(t, os.Mkdir(counted, 0o700))
	run(t, program, redistest.Real(t).Addr(), counted)
	folders, err := filepath.Glob(filepath.Join(counted, "*[0-9]"))
	rig.Must(t, err)
	var least way
	some, every := map[string]bool{}, map[string]int{} // functions that any pair has run, and by how many
	for i, folder := range folders {                   // others have what a timer of the client does as well
		w := wayOf(t, folder)
		t.Logf("pair %d: %d functions, %d mutexes", i, len(w.functions), w.mutexes)
		for _, f := range w.functions {
			some[nameOf(f)] = true
			every[nameOf(f)]++
		}
		if i == 0 || cmp.Or(cmp.Compare(len(w.functions), len(least.functions)), cmp.Compare(w.mutexes, least.mutexes)) < 0 {
			least = w
		}
	}
	if len(least.functions) == 0 || least.frames == 0 || least.mutexes == 0 {
		t.Fatal("nothing was counted")
	}
	byFile := map[string][]string{}
	for _, f := range least.functions {
		file, function, _ := strings.Cut(f, " ")
		byFile[file] = append(byFile[file], function)
	}
	var places []string
	for _, file := range slices.Sorted(maps.Keys(byFile)) {
		places = append(places, file+": "+strings.Join(byFile[file], " "))
	}
	t.Logf("%s\n%d functions in %d files, %d frames from Lock to its write, %d mutexes",
		strings.Join(places, "\n"), len(least.functions), len(byFile), least.frames, least.mutexes)
	report(t, held(ceilings, "functions that a lock and an unlock run", len(least.functions), places))
	report(t, held(ceilings, "files that a lock and an unlock run", len(byFile), nil))
	report(t, held(ceilings, "frames from a lock to its write", least.frames, nil))
	report(t, held(ceilings, "mutexes that a lock and an unlock take", least.mutexes, nil))
	maps.DeleteFunc(every, func(_ string, pairs int) bool { return pairs < len(folders) })
	record, err := os.ReadFile("docs/decisions/0039-what-a-pair-passes.md")
	rig.Must(t, err)
	report(t, unaccounted(string(record), some, every))
}

// nameOf is what the record calls a function of the list "internal/room/hold.go *Hold.end": room.Hold.end.
func nameOf(function string) string {
	file, name, _ := strings.Cut(function, " ")
	name = strings.TrimPrefix(name, "*")
	if folder := path.Dir(file); folder != "." {
		return path.Base(folder) + "." + name
	}
	return name
}

// unaccounted says where the record of what each function buys differs from what pairs have run.
func unaccounted(record string, some map[string]bool, every map[string]int) (wrong []string) {
	_, list, _ := strings.Cut(record, "## The list")
	list, _, _ = strings.Cut(list, "\n## ")
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("(?:^|[ \n])`([A-Za-z.]+)`").FindAllStringSubmatch(list, -1) {
		named[m[1]] = true
	}
	for name := range named {
		if strings.Contains(name, ".") && !some[name] {
			wrong = append(wrong, "the record of what a pair passes names "+name+", which no pair has run")
		}
	}
	for name := range every {
		if !named[name] {
			wrong = append(wrong, "the record of what a pair passes does not say what "+name+" buys")
		}
	}
	slices.Sort(wrong)
	return wrong
}

func TestRecordOfAPairHasEachFunctionThatRuns(t *testing.T) {
	record := "`before`\n## The list\n**A** (2): `Hold.Wanted`.\n\n`room.Hold.end` `gone.f`\n\n## After\n`after.f`"
	some := map[string]bool{"room.Hold.end": true, "Hold.Wanted": true, "once.f": true, "new.f": true}
	wrong := unaccounted(record, some, map[string]int{"room.Hold.end": 5, "new.f": 5})
	if len(wrong) != 2 || !strings.Contains(wrong[0], "new.f buys") || !strings.Contains(wrong[1], "gone.f, which") {
		t.Error(wrong)
	}
	if name := nameOf("internal/room/hold.go *Hold.end"); name != "room.Hold.end" || nameOf("hold.go *Hold.end") != "Hold.end" {
		t.Error(name)
	}
}

// way is what a pair of Lock and Unlock went through.
type way struct {
	functions       []string // with their files
	frames, mutexes int
}

var (
	// passed are lines of go tool covdata about functions of ours that have run, and counted those about their blocks.
	passed  = regexp.MustCompile(`(?m)^github.com/relock-go/relock/(\S+\.go):\d+:\s+(\S+)\s+[1-9]\S*%$`)
	counted = regexp.MustCompile(`(?m)^github.com/relock-go/relock/(\S+\.go):(\d+)\.(\d+),(\d+)\.(\d+) \d+ ([1-9]\d*)$`)
)

func wayOf(t *testing.T, folder string) (w way) {
	t.Helper()
	for _, m := range passed.FindAllStringSubmatch(run(t, "go", "tool", "covdata", "func", "-i="+folder), -1) {
		if !strings.HasPrefix(m[1], "test/") {
			w.functions = append(w.functions, m[1]+" "+m[2])
		}
	}
	slices.Sort(w.functions)
	text, err := os.ReadFile(folder + ".frames")
	rig.Must(t, err)
	w.frames, err = strconv.Atoi(string(text))
	rig.Must(t, err)
	run(t, "go", "tool", "covdata", "textfmt", "-i="+folder, "-o="+folder+".blocks")
	text, err = os.ReadFile(folder + ".blocks")
	rig.Must(t, err)
	locks := map[string][]position{} // by file
	for _, m := range counted.FindAllStringSubmatch(string(text), -1) {
		file := m[1]
		if strings.HasPrefix(file, "test/") {
			continue
		}
		if _, known := locks[file]; !known {
			locks[file] = locksIn(t, file)
		}
		var n [5]int
		for i := range n {
			n[i], err = strconv.Atoi(m[i+2])
			rig.Must(t, err)
		}
		for _, at := range locks[file] {
			if at.within(position{n[0], n[1]}, position{n[2], n[3]}) {
				w.mutexes += n[4]
			}
		}
	}
	return w
}

type position struct{ line, column int }

func (p position) within(from, to position) bool {
	after := p.line > from.line || p.line == from.line && p.column >= from.column
	return after && (p.line < to.line || p.line == to.line && p.column < to.column)
}

// locksIn are the places in a file where a mutex is taken: a call of Lock or RLock without arguments.
func locksIn(t *testing.T, file string) (places []position) {
	t.Helper()
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
	rig.Must(t, err)
	ast.Inspect(f, func(n ast.Node) bool {
		if call, is := n.(*ast.CallExpr); is && len(call.Args) == 0 {
			if s, is := call.Fun.(*ast.SelectorExpr); is && (s.Sel.Name == "Lock" || s.Sel.Name == "RLock") {
				at := set.Position(call.Pos())
				places = append(places, position{at.Line, at.Column})
			}
		}
		return true
	})
	return places
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}
