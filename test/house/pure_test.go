package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// pure are the packages that decide and do nothing: what happens, and when, is told to
// them, and what follows they return.
var pure = []string{"internal/ledger", "internal/room", "internal/trust"}

// harmless is what they may use of the standard library: nothing in it waits, starts
// anything, or tells the time but package time, of which only durations are.
var harmless = []string{"cmp", "container/list", "errors", "iter", "maps", "math", "slices", "strconv", "strings", "time"}

// clocks are what package time has beside durations.
var clocks = []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"}

func TestWhatDecidesDoesNothing(t *testing.T) { report(t, impure(everyFile(t))) }

// impure reports where a package that decides does something.
func impure(files map[string]string) (problems []string) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !slices.Contains(pure, path.Dir(name)) || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, files[name], parser.SkipObjectResolution)
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		problems = append(problems, deeds(name, f)...)
	}
	return problems
}

// deeds are what a file does that only its callers may.
func deeds(name string, f *ast.File) (problems []string) {
	for _, spec := range f.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		if !judged(imported) && !slices.Contains(harmless, imported) {
			problems = append(problems, name+" imports "+imported+", which does something")
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		what := ""
		switch n := n.(type) {
		case *ast.GoStmt:
			what = "starts a goroutine"
		case *ast.ChanType:
			what = "has a channel"
		case *ast.SendStmt:
			what = "sends on a channel"
		case *ast.SelectorExpr:
			if x, is := n.X.(*ast.Ident); is && x.Name == "time" && slices.Contains(clocks, n.Sel.Name) {
				what = "uses time." + n.Sel.Name
			} else if is && x.Name == "clock" && n.Sel.Name != "Instant" && n.Sel.Name != "Max" && n.Sel.Name != "Min" {
				what = "uses clock." + n.Sel.Name
			}
		}
		if what != "" {
			problems = append(problems, name+" "+what+": it decides, and others act")
		}
		return true
	})
	return problems
}

func TestPureRuleCanFail(t *testing.T) {
	files := map[string]string{
		"internal/room/good.go":      "package room\n\nimport (\n\t\"slices\"\n\t\"time\"\n)\n\nvar _ = slices.Max([]time.Duration{time.Second})\n",
		"internal/room/good_test.go": "package room\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {}\n",
		"internal/inbox/acts.go":     "package inbox\n\nimport \"sync\"\n\nvar mu sync.Mutex\n",
		"internal/room/locks.go":     "package room\n\nimport \"sync\"\n\nvar mu sync.Mutex\n",
		"internal/room/waits.go":     "package room\n\nimport \"context\"\n\nvar _ context.Context\n",
		"internal/room/looks.go":     "package room\n\nimport \"time\"\n\nvar began = time.Now()\n",
		"internal/trust/asks.go":     "package trust\n\nvar k = new(clock.Clock)\n",
		"internal/ledger/starts.go":  "package ledger\n\nfunc f() { go f() }\n",
		"internal/ledger/tells.go":   "package ledger\n\nfunc f(c chan int) {}\n",
	}
	if got := impure(files); len(got) != 6 {
		t.Errorf("got %q, want one for each file that does something", got)
	}
}
