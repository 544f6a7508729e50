package house_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// What is longer than this is read in parts, if at all.
const (
	longestFile     = 300
	longestFunction = 40
)

func TestFilesAndFunctionsAreShort(t *testing.T) { report(t, overlong(everyFile(t))) }

// overlong reports files and functions that are too long, those of tests as well. There
// are no exceptions.
func overlong(files map[string]string) (problems []string) {
	for name, text := range files {
		if !strings.HasSuffix(name, ".go") {
			continue
		}
		if n := strings.Count(text, "\n"); n > longestFile {
			problems = append(problems, fmt.Sprintf("%s has %d lines, and may have %d", name, n, longestFile))
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				if n := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1; n > longestFunction {
					problems = append(problems, fmt.Sprintf("%s: %s has %d lines, and may have %d", name, fn.Name.Name, n, longestFunction))
				}
			}
		}
	}
	slices.Sort(problems)
	return problems
}

func TestLengthRulesCanFail(t *testing.T) {
	lines := func(n int) string { return strings.Repeat("\t_ = 1\n", n) }
	files := map[string]string{
		"good.go":      "package a\n\nfunc f() {\n" + lines(longestFunction-2) + "}\n",
		"deep.go":      "package a\n" + strings.Repeat("\n", longestFile-1),
		"long.md":      strings.Repeat("\n", longestFile+1),
		"good_test.go": "package a\n\nfunc TestF(t *testing.T) {\n" + lines(longestFunction-2) + "}\n",
	}
	if got := overlong(files); len(got) > 0 {
		t.Errorf("what is short enough is refused: %q", got)
	}
	files["long_test.go"] = "package a\n\nfunc (x *T[K]) f() {\n" + lines(longestFunction-1) + "}\n"
	files["deep.go"] += "\n"
	if got := overlong(files); len(got) != 2 {
		t.Errorf("got %q, want one function and one file that are too long", got)
	}
}
