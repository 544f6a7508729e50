package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

// rigFolder has what the tests of other folders call.
const rigFolder = "internal/rig"

func TestTestsSleepInVirtualTimeOnly(t *testing.T) { report(t, realSleeps(everyFile(t))) }

// realSleeps reports tests that come to a time.Sleep and to no bubble of synctest:
// they wait in real time, which is too short or too long. It knows what calls what
// by the names of functions and methods alone: it does not see a sleep in a method of
// the rig, nor one beside a bubble.
func realSleeps(files map[string]string) (problems []string) {
	uses := map[string]map[string][]string{} // by folder and function: the names in it
	for file, text := range files {
		dir := path.Dir(file)
		if dir != rigFolder && !strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, text, 0)
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		if uses[dir] == nil {
			uses[dir] = map[string][]string{}
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				name := fn.Name.Name
				if fn.Recv != nil {
					name = "." + name // a method, of whatever type
				}
				uses[dir][name] = append(uses[dir][name], namesIn(fn)...)
			}
		}
	}
	for dir, in := range uses {
		for name := range in {
			if reached := reach(in, uses[rigFolder], name); testFunc.MatchString("func "+name+"(") && reached["time.Sleep"] && !reached["synctest.Test"] {
				problems = append(problems, dir+": "+name+" sleeps in real time")
			}
		}
	}
	slices.Sort(problems)
	return problems
}

// namesIn are the functions that a function names, those of packages as package.name.
func namesIn(fn ast.Node) (names []string) {
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			if n.Obj == nil || n.Obj.Kind == ast.Fun { // no variable
				names = append(names, n.Name)
			}
		case *ast.KeyValueExpr: // whose key may be a field
			names = append(names, namesIn(n.Value)...)
			return false
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok {
				names = append(names, x.Name+"."+n.Sel.Name)
			}
			names = append(names, "."+n.Sel.Name)
			names = append(names, namesIn(n.X)...)
			return false
		}
		return true
	})
	return names
}

// reach is every name that a function comes to, by way of others of its package and
// of the rig.
func reach(in, rig map[string][]string, name string) map[string]bool {
	seen := map[string]bool{}
	for todo := []string{name}; len(todo) > 0; {
		next := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[next] {
			continue
		}
		seen[next] = true
		if shared, is := strings.CutPrefix(next, "rig."); is {
			for name := range reach(rig, nil, shared) {
				seen[name] = true
			}
		}
		todo = append(todo, in[next]...)
	}
	return seen
}

func TestSleepRuleCanFail(t *testing.T) {
	const run = "package rig\nfunc Run(f func()) { bubble(f) }\nfunc bubble(f func()) { synctest.Test(t, f) }\nfunc Nap() { time.Sleep(1) }\n"
	const virtual = "package a\nfunc TestA(t *testing.T) { play(nap) }\nfunc play(f func()) { synctest.Test(t, f) }\nfunc nap() { time.Sleep(1) }\ntype x int\nfunc (x) doze() { time.Sleep(1) }\n"
	if got := realSleeps(map[string]string{"a/a_test.go": virtual}); len(got) > 0 {
		t.Errorf("a bubble is refused: %q", got)
	}
	if got := realSleeps(map[string]string{rigFolder + "/run.go": run, "a/a_test.go": "package a\nfunc TestA(t *testing.T) { rig.Run(rig.Nap) }"}); len(got) > 0 {
		t.Errorf("a bubble of the rig is refused: %q", got)
	}
	for _, sleeps := range []string{"time.Sleep(1)", "nap()", "go func() { nap() }()", "x(0).doze()", "rig.Nap()"} {
		beside := "package a\nfunc ExampleB() { " + sleeps + " }"
		if got := realSleeps(map[string]string{rigFolder + "/run.go": run, "a/a_test.go": virtual, "a/b_test.go": beside}); len(got) != 1 {
			t.Errorf("%s: got %q, want one", sleeps, got)
		}
	}
}
