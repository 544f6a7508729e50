package mutation_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/relock-go/relock/test/mutation"
)

// TestEveryMutationCompiles: code that does not compile fails every test, and shows nothing. Only functions that a
// rule changes are checked, or this would take a minute.
func TestEveryMutationCompiles(t *testing.T) {
	code := newCompiler(t)
	for _, m := range slices.Concat(mutation.All, mutation.Interop) {
		changed, err := m.Without(code.sources)
		if err != nil {
			continue // TestMutationsNameWhatExists says so
		}
		for file, text := range changed {
			if err := code.check(file, text); err != nil {
				t.Errorf("%s: %v", m.Name, err)
			}
		}
	}
}

func TestMutationThatDoesNotCompileIsFound(t *testing.T) {
	code := newCompiler(t)
	text, err := os.ReadFile("internal/trust/trust.go")
	if err != nil {
		t.Fatal(err)
	}
	if err := code.check("internal/trust/trust.go", string(text)); err != nil {
		t.Errorf("the code as it is: %v", err)
	}
	broken := strings.Replace(string(text), "return ", "return undeclared + ", 1)
	if err := code.check("internal/trust/trust.go", broken); err == nil || !strings.Contains(err.Error(), "undeclared") {
		t.Errorf("an undeclared name: %v", err)
	}
	text, err = os.ReadFile("redisson/names.go")
	if err != nil {
		t.Fatal(err)
	}
	broken = strings.ReplaceAll(string(text), "utf8.ValidString", "true || strings.HasPrefix")
	if err := code.check("redisson/names.go", broken); err == nil || !strings.Contains(err.Error(), "not used") {
		t.Errorf("an import that nothing uses: %v", err)
	}
}

// A compiler checks the types of single functions, against the compiled packages of this module.
type compiler struct {
	sources *mutation.Code
	files   map[string][]string // the names of a folder's files on this platform
	exports map[string]string   // compiled packages by import path
	set     *token.FileSet
	imports types.Importer // reads each package once
}

func newCompiler(t *testing.T) *compiler {
	t.Helper()
	c := &compiler{sources: mutation.NewCode(os.DirFS(".")), files: map[string][]string{}, exports: map[string]string{}, set: token.NewFileSet()}
	c.imports = importer.ForCompiler(c.set, "gc", func(of string) (io.ReadCloser, error) { return os.Open(c.exports[of]) })
	list := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,GoFiles,Export,Module", "./...")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath, Dir, Export string
			GoFiles                 []string
			Module                  *struct{ Path, Dir string }
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return c
		} else if err != nil {
			t.Fatal(err)
		}
		c.exports[p.ImportPath] = p.Export
		if p.Module != nil && p.Module.Path == "github.com/relock-go/relock" {
			folder := "." + strings.TrimPrefix(p.Dir, p.Module.Dir)
			c.files[path.Clean(folder)] = p.GoFiles
		}
	}
}

// check returns the first error in the functions of a file that text changes.
func (c *compiler) check(file, text string) error {
	folder := path.Dir(file)
	if !slices.Contains(c.files[folder], path.Base(file)) {
		return nil // a script, or code of another platform
	}
	var files []*ast.File
	for _, name := range c.files[folder] {
		old, err := os.ReadFile(path.Join(folder, name))
		if err != nil {
			return err
		}
		now := string(old)
		if name == path.Base(file) {
			now = text
		}
		f, err := parser.ParseFile(c.set, name, now, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		unchanged := bodies(string(old))
		if now != string(old) {
			if err := unusedImport(f); err != nil {
				return err
			}
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name != "init" && unchanged[textOf(c.set, now, d)] {
				fn.Body = nil
			}
		}
		files = append(files, f)
	}
	var first error
	config := types.Config{
		Importer: c.imports,
		Error: func(err error) {
			of := err.Error()
			dropped := strings.Contains(of, "imported") && strings.Contains(of, "and not used") || strings.Contains(of, "function body")
			if first == nil && !dropped {
				first = err
			}
		},
	}
	_, _ = config.Check(folder, c.set, files, nil)
	return first
}

// bodies returns the text of each declaration of a file.
func bodies(text string) map[string]bool {
	all := map[string]bool{}
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, "", text, parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	for _, d := range f.Decls {
		all[textOf(set, text, d)] = true
	}
	return all
}

func textOf(set *token.FileSet, text string, n ast.Node) string {
	return text[set.Position(n.Pos()).Offset:set.Position(n.End()).Offset]
}

// major is the end of an import path that names a major version.
var major = regexp.MustCompile(`^v[0-9]+$`)

// unusedImport returns an error if the file names one of its imports nowhere.
func unusedImport(f *ast.File) error {
	used := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if of, ok := s.X.(*ast.Ident); ok {
				used[of.Name] = true
			}
		}
		return true
	})
	for _, i := range f.Imports {
		full := strings.Trim(i.Path.Value, `"`)
		name := path.Base(full)
		if major.MatchString(name) { // as of go-redis/v9 and math/rand/v2
			name = strings.TrimPrefix(path.Base(path.Dir(full)), "go-")
		}
		if i.Name != nil {
			name = i.Name.Name
		}
		if !used[name] && name != "_" && name != "." {
			return fmt.Errorf("%s is imported and not used", full)
		}
	}
	return nil
}
