package house_test

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReadmeCodeIsAnExample fails when README.md or docs/operations.md shows code
// that is not the body of an Example, or one whole example file: what compiles
// and runs cannot rot.
func TestReadmeCodeIsAnExample(t *testing.T) {
	examples := exampleCode(t)
	for _, page := range []string{"README.md", "docs/operations.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		blocks := goBlocks(string(text))
		if len(blocks) == 0 {
			t.Errorf("%s shows no code", page)
		}
		for _, block := range blocks {
			if !examples[block] {
				t.Errorf("%s shows code that is no Example:\n%s", page, block)
			}
		}
	}
}

func goBlocks(markdown string) (blocks []string) {
	for _, block := range strings.Split("\n"+markdown, "\n```go\n")[1:] {
		code, _, _ := strings.Cut(block, "\n```")
		blocks = append(blocks, strings.TrimSpace(code))
	}
	return blocks
}

// exampleCode is the set of what README.md may show: the bodies of all
// Examples of this package, and the files that hold them.
func exampleCode(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string]bool{}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, file, src, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && strings.HasPrefix(fn.Name.Name, "Example") {
				allowed[strings.TrimSpace(string(src))] = true
				allowed[body(t, fset, f, fn)] = true
			}
		}
	}
	return allowed
}

var output = regexp.MustCompile(`(?i)\n\t//\s*(unordered )?output:`)

// body is a function's body as pkg.go.dev shows it: without braces, with one
// level of indent less, and without the Output comment.
func body(t *testing.T, fset *token.FileSet, f *ast.File, fn *ast.FuncDecl) string {
	t.Helper()
	var buf bytes.Buffer
	if err := format.Node(&buf, fset, &printer.CommentedNode{Node: fn.Body, Comments: f.Comments}); err != nil {
		t.Fatal(err)
	}
	text := strings.TrimSuffix(strings.TrimPrefix(buf.String(), "{"), "}")
	if at := output.FindStringIndex(text); at != nil {
		text = text[:at[0]]
	}
	return strings.TrimSpace(strings.ReplaceAll(text, "\n\t", "\n"))
}
