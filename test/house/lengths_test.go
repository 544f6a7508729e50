package house_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strings"
	"testing"
)

// What is longer than this is read in parts, if at all.
const (
	longestFile     = 300
	longestFunction = 40
)

func TestFilesAndFunctionsAreShort(t *testing.T) { report(t, overlong(everyFile(t), mayBeLong)) }

// overlong reports files and functions that are too long and not among the exceptions,
// and exceptions that are none any more.
func overlong(files map[string]string, exceptions []string) (problems []string) {
	long := map[string]int{}
	for name, text := range files {
		if !strings.HasSuffix(name, ".go") {
			continue
		}
		if n := strings.Count(text, "\n"); n > longestFile {
			long[name] = n
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
					long[name+" "+nameOf(fn)] = n
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(long)) {
		if !slices.Contains(exceptions, name) {
			problems = append(problems, fmt.Sprintf("%s has %d lines: files have %d at most, functions %d", name, long[name], longestFile, longestFunction))
		}
	}
	for _, name := range exceptions {
		if long[name] == 0 {
			problems = append(problems, name+" is an exception, and is short or gone: take it out of mayBeLong")
		}
	}
	return problems
}

// nameOf is a function's name, with its type's if it is a method.
func nameOf(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	of := fn.Recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	if generic, ok := of.(*ast.IndexExpr); ok {
		of = generic.X
	}
	return fmt.Sprint(of) + "." + fn.Name.Name
}

func TestLengthRulesCanFail(t *testing.T) {
	lines := func(n int) string { return strings.Repeat("\t_ = 1\n", n) }
	files := map[string]string{
		"good.go": "package a\n\nfunc f() {\n" + lines(longestFunction-2) + "}\n",
		"long.go": "package a\n\nfunc (x *T[K]) f() {\n" + lines(longestFunction-1) + "}\n",
		"deep.go": "package a\n" + strings.Repeat("\n", longestFile),
	}
	if got := overlong(files, []string{"long.go T.f", "deep.go"}); len(got) > 0 {
		t.Errorf("exceptions are refused: %q", got)
	}
	if got := overlong(files, []string{"good.go f", "deep.go"}); len(got) != 2 {
		t.Errorf("got %q, want one function that is too long, and one exception that is none", got)
	}
	if got := overlong(files, []string{"long.go T.f"}); len(got) != 1 {
		t.Errorf("got %q, want one file that is too long", got)
	}
}
