package house_test

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/relock-go/relock/internal/rig"
)

// shortHop is the length of a function that its only caller could do without.
const shortHop = 3

// TestShortFunctionsAreWhereTheyAreCalled: a reader opens no file for three lines that one place calls.
func TestShortFunctionsAreWhereTheyAreCalled(t *testing.T) {
	packages, importing := compiled(t)
	found, err := hops(packages, importing)
	rig.Must(t, err)
	report(t, heldPlaces(ceilings, found))
}

// sources are the files of packages as this system compiles them: texts by name, by import path.
type sources map[string]map[string]string

// compiled are the packages of this module but for tests, and what imports them.
func compiled(t *testing.T) (sources, types.Importer) {
	t.Helper()
	const format = "{{.ImportPath}}\t{{.Export}}\t{{if not .DepOnly}}{{range .GoFiles}}{{$.Dir}}/{{.}} {{end}}{{end}}"
	list := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-f", format,
		".", "./internal/...", "./cmd/...", "./lua", "./redisson/...", "./relocktest", "./relockweb")
	out, err := list.Output()
	rig.Must(t, err)
	root, err := os.Getwd()
	rig.Must(t, err)
	packages, exports := sources{}, map[string]string{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		exports[fields[0]] = fields[1]
		if slices.Contains(tooling, strings.TrimPrefix(fields[0], module+"/")) {
			continue
		}
		for name := range strings.FieldsSeq(fields[2]) {
			text, err := os.ReadFile(name)
			rig.Must(t, err)
			short, err := filepath.Rel(root, name)
			rig.Must(t, err)
			if packages[fields[0]] == nil {
				packages[fields[0]] = map[string]string{}
			}
			packages[fields[0]][filepath.ToSlash(short)] = string(text)
		}
	}
	return packages, importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
}

// called is a function, and where the code names it.
type called struct {
	file, pkg     string
	short         bool
	callers, from []string // their files and packages
}

// calls are functions by their full names.
type calls map[string]*called

func (all calls) of(f *types.Func) *called {
	name := f.Origin().FullName()
	if all[name] == nil {
		all[name] = &called{}
	}
	return all[name]
}

// hops are short functions whose only caller is in another file.
func hops(packages sources, importing types.Importer) (found map[string][]string, err error) {
	all := calls{}
	for path, files := range packages {
		if err := all.add(path, files, importing); err != nil {
			return nil, err
		}
	}
	found = map[string][]string{"hops to another file": nil, "hops to another package": nil}
	for name, c := range all {
		offered := c.pkg == module && ast.IsExported(name[strings.LastIndex(name, ".")+1:]) // to users
		if !c.short || !production(c.file) || offered || len(c.callers) != 1 || c.callers[0] == c.file {
			continue
		}
		kind := "hops to another file"
		if c.from[0] != c.pkg {
			kind = "hops to another package"
		}
		found[kind] = append(found[kind], fmt.Sprintf("%s: %s, called in %s", c.file, strings.ReplaceAll(name, module, "relock"), c.callers[0]))
	}
	return found, nil
}

// add notes the functions of a package, and those that it names.
func (all calls) add(path string, texts map[string]string, importing types.Importer) error {
	set := token.NewFileSet()
	var files []*ast.File
	for name, text := range texts {
		f, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: importing}
	if _, err := config.Check(path, set, files, info); err != nil {
		return err
	}
	for _, f := range files {
		for _, d := range f.Decls {
			if d, is := d.(*ast.FuncDecl); is && d.Name.Name != "init" && d.Name.Name != "_" {
				c := all.of(info.Defs[d.Name].(*types.Func))
				c.file, c.pkg = set.Position(d.Pos()).Filename, path
				c.short = set.Position(d.End()).Line-set.Position(d.Pos()).Line < shortHop
			}
		}
	}
	for id, object := range info.Uses {
		if fn, is := object.(*types.Func); is {
			c := all.of(fn)
			c.callers, c.from = append(c.callers, set.Position(id.Pos()).Filename), append(c.from, path)
		}
	}
	return nil
}

func TestHopRuleCanFail(t *testing.T) {
	hop := "\n\nfunc hop() {}\n\nfunc (T[K]) Hop() {}\n\ntype T[K any] struct{}\n\nfunc Offered() {}\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  int
	}{
		"called twice":         {map[string]string{"a.go": "package a" + hop, "b.go": "package a\n\nfunc b() { hop(); hop(); T[int]{}.Hop(); T[int]{}.Hop() }\n"}, 0},
		"called where it is":   {map[string]string{"a.go": "package a" + hop + "func b() { hop(); T[int]{}.Hop() }\n"}, 0},
		"of users":             {map[string]string{"a.go": "package a" + hop, "b.go": "package a\n\nfunc b() { Offered() }\n"}, 0},
		"longer":               {map[string]string{"a.go": "package a\n\nfunc hop() {\n\tprintln(1)\n\tprintln(2)\n}\n", "b.go": "package a\n\nfunc b() { hop() }\n"}, 0},
		"called once, from b":  {map[string]string{"a.go": "package a" + hop, "b.go": "package a\n\nfunc b() { hop() }\n"}, 1},
		"a method, as a value": {map[string]string{"a.go": "package a\n\ntype T[K any] struct{}\n\nfunc (T[K]) hop() {}\n", "b.go": "package a\n\nvar b = T[int]{}.hop\n"}, 1},
	} {
		if found, err := hops(sources{module: c.files}, nil); err != nil || len(found["hops to another file"]) != c.want {
			t.Errorf("%s: got %q, %v, want %d", name, found, err, c.want)
		}
	}
}
