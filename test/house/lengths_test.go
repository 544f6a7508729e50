package house_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
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
	mostLong        = 0.05 // the largest share of a package's functions that may be longer than longFunction
)

func TestFilesAndFunctionsAreShort(t *testing.T) { report(t, overlong(everyFile(t))) }

// overlong reports files and functions over the ceilings, in tests too, and packages in which long functions are not
// rare. A package may always have one.
func overlong(files map[string]string) (problems []string) {
	functions, long := map[string]int{}, map[string]int{} // by folder
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
				functions[path.Dir(name)]++
				n := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1
				if n > longFunction {
					long[path.Dir(name)]++
				}
				if n > longestFunction {
					problems = append(problems, fmt.Sprintf("%s: %s has %d lines, and may have %d", name, fn.Name.Name, n, longestFunction))
				}
			}
		}
	}
	for dir, n := range long {
		if n > 1 && float64(n) > mostLong*float64(functions[dir]) {
			problems = append(problems, fmt.Sprintf("%s: %d of %d functions have more than %d lines, and at most %.0f %% may", dir, n, functions[dir], longFunction, 100*mostLong))
		}
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
	files["b/few.go"] = "package b\n\nfunc f() {\n" + lines(longFunction) + "}\n" // one is always allowed
	files["c/many.go"] = "package c\n\nfunc f() {\n" + lines(longFunction) + "}\n\nfunc g() {\n" + lines(longFunction) + "}\n"
	if got := overlong(files); len(got) != 5 {
		t.Errorf("got %q, want a function, a method and a file that are too long, and two packages of too many long functions", got)
	}
}
