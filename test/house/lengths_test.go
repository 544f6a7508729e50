package house_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The ceilings for a file and for a function. A type belongs in one file, and the main story of an
// operation in one function, so both have room; functions longer than longFunction must stay rare.
const (
	longestFile     = 800
	longestFunction = 80
	longFunction    = 40
	mostLong        = 0.05 // the largest share of functions that may be longer than longFunction
)

func TestFilesAndFunctionsAreShort(t *testing.T) { report(t, overlong(everyFile(t))) }

// overlong reports files and functions over the ceilings, in tests too, and a tree in which
// long functions are no longer rare.
func overlong(files map[string]string) (problems []string) {
	functions, long := 0, 0
	for name, text := range files {
		java := strings.HasSuffix(name, ".java")
		if !java && !strings.HasSuffix(name, ".go") {
			continue
		}
		if n := strings.Count(text, "\n"); n > longestFile {
			problems = append(problems, fmt.Sprintf("%s has %d lines, and may have %d", name, n, longestFile))
		}
		if java {
			problems = append(problems, overlongMethods(name, text)...)
			continue
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				functions++
				n := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1
				if n > longFunction {
					long++
				}
				if n > longestFunction {
					problems = append(problems, fmt.Sprintf("%s: %s has %d lines, and may have %d", name, fn.Name.Name, n, longestFunction))
				}
			}
		}
	}
	if float64(long) > mostLong*float64(functions) {
		problems = append(problems, fmt.Sprintf("%d of %d functions have more than %d lines, and at most %.0f %% may", long, functions, longFunction, 100*mostLong))
	}
	slices.Sort(problems)
	return problems
}

// methodOf is a method as it stands in a class, and its last line.
var methodOf = regexp.MustCompile(`(?ms)^    [a-z][^;={}]*?(\w+)\([^;{}]*\{$.*?^    \}$`)

// overlongMethods is overlong for the methods of Java's classes.
func overlongMethods(name, text string) (problems []string) {
	for _, m := range methodOf.FindAllStringSubmatch(text, -1) {
		if n := strings.Count(m[0], "\n") + 1; n > longestFunction {
			problems = append(problems, fmt.Sprintf("%s: %s has %d lines, and may have %d", name, m[1], n, longestFunction))
		}
	}
	return problems
}

func TestLengthRulesCanFail(t *testing.T) {
	lines := func(n int) string { return strings.Repeat("\t_ = 1\n", n) }
	short := "package a\n" + strings.Repeat("func f() {}\n", 40)
	files := map[string]string{
		"short.go":     short,
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
	files["A.java"] = "class A {\n    int f(int a,\n            int b) {\n" + strings.Repeat("        g();\n", longestFunction-3) + "    }\n\n    void g() {\n    }\n}\n"
	files["B.java"] = "class B {\n    int f() {\n" + strings.Repeat("        g();\n", longestFunction-1) + "    }\n}\n"
	if got := overlong(files); len(got) != 4 {
		t.Errorf("got %q, want a function, a method and a file that are too long, and too many long functions", got)
	}
}
