package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strings"
	"testing"
)

const architecture = "docs/architecture.md"

// TestArchitectureNamesEveryFileAndPackage and none that there is not: the files at the
// top and the scripts by their names, packages by their folders.
func TestArchitectureNamesEveryFileAndPackage(t *testing.T) { report(t, offTheMap(everyFile(t))) }

var mapped = regexp.MustCompile("^\\| (`.*?`) \\|")

// offTheMap reports what the tables of docs/architecture.md leave out or invent.
func offTheMap(files map[string]string) (problems []string) {
	there := map[string]bool{}
	for name := range files {
		if row := rowOf(files, name); row != "" {
			there[row] = true
		}
	}
	named := map[string]bool{}
	for line := range strings.Lines(files[architecture]) {
		if cell := mapped.FindStringSubmatch(line); cell != nil {
			for _, span := range codeSpan.FindAllString(cell[1], -1) {
				named[strings.Trim(span, "`")] = true
			}
		}
	}
	for name := range there {
		if !named[name] {
			problems = append(problems, architecture+" has no row for "+name)
		}
	}
	for name := range named {
		if looksLikeFile := strings.Contains(name, "/") || path.Ext(name) == ".go" || path.Ext(name) == ".lua"; looksLikeFile && !there[name] {
			problems = append(problems, architecture+" has a row for "+name+", which is not there")
		}
	}
	return problems
}

// rowOf is what has to have a row for a file: the file, its package, or its module; or "".
func rowOf(files map[string]string, name string) string {
	dir := path.Dir(name)
	first, _, _ := strings.Cut(name, "/")
	switch {
	case path.Ext(name) == ".lua" && dir == "lua":
		return path.Base(name)
	case path.Ext(name) != ".go":
		return ""
	case dir == "." && !strings.HasSuffix(name, "_test.go") && name != "doc.go":
		return name
	case first == "test" && moduleOf(files, name) != ".":
		return moduleOf(files, name)
	case (first == "internal" || first == "test" || first == "cmd" || first == "relocktest") && !strings.Contains(dir, "/testdata"):
		return dir
	}
	return ""
}

// TestWalksNameWhatExists: what the page names as code before its tables of packages and files is declared, a method at
// its type.
func TestWalksNameWhatExists(t *testing.T) { report(t, namesNothing(everyFile(t))) }

var (
	codeName    = regexp.MustCompile(`^(?:([A-Za-z]+)\.)?([A-Za-z][A-Za-z_]+)$`)
	luaFunction = regexp.MustCompile(`(?m)^local function (\w+)`)
)

// namesNothing reports names of the walks that the code does not have.
func namesNothing(files map[string]string) (problems []string) {
	there := map[string]bool{}
	for file, text := range files {
		if strings.HasPrefix(file, "lua/") {
			for _, f := range luaFunction.FindAllStringSubmatch(text, -1) {
				there[f[1]] = true
			}
		}
		if !ofTheLibrary(file) {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
		if err != nil {
			continue // the compiler says so
		}
		for _, name := range declared(f) {
			there[name], there[f.Name.Name+"."+name] = true, true
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv != nil {
					there[receiverOf(n)+"."+n.Name.Name] = true
				}
			case *ast.TypeSpec:
				if s, is := n.Type.(*ast.StructType); is {
					for _, field := range s.Fields.List {
						for _, id := range field.Names {
							there[n.Name.Name+"."+id.Name] = true
						}
					}
				}
			}
			return true
		})
	}
	walks, _, _ := strings.Cut(files[architecture], "\n## Packages\n")
	for _, span := range codeSpan.FindAllString(walks, -1) {
		name := strings.Trim(span, "`")
		if n := codeName.FindStringSubmatch(name); n != nil && !there[name] && !strings.HasPrefix(n[2], "Test") && n[2] != "lua" && n[2] != "go" {
			problems = append(problems, architecture+" names "+name+", which is not declared")
		}
	}
	return problems
}

func TestRuleOfWalksCanFail(t *testing.T) {
	files := map[string]string{
		"a.go": "package a\ntype Lock struct{ mu int }\nfunc (l *Lock) Do() {}\nfunc take() {}\n", "lua/b.lua": "local function sweep()\n",
		architecture: "`Lock.Do`, `Lock.mu`, `take`, `a.take`, `sweep`, `a.go`, `grant NONCE`\n## Packages\n`else`",
	}
	if got := namesNothing(files); len(got) > 0 {
		t.Errorf("a true walk is refused: %q", got)
	}
	files[architecture] = "`Lock.Undo`, `give`, `Take.Do`"
	if got := namesNothing(files); len(got) != 3 {
		t.Errorf("got %q, want three names that are not declared", got)
	}
}

func TestMapRuleCanFail(t *testing.T) {
	files := map[string]string{
		"a.go": "", "b.go": "", "a_test.go": "", "lua/c.lua": "", "internal/d/d.go": "", "test/e/e_test.go": "",
		"test/f/go.mod": "", "test/f/f.go": "", "test/f/g/g.go": "",
		architecture: "| `a.go`, `b.go` | x |\n| `c.lua` | x |\n| `internal/d` | x |\n| `test/e` | `f.go` |\n| `test/f` | x |\n| `Lock.mu` | x |\n",
	}
	if got := offTheMap(files); len(got) > 0 {
		t.Errorf("a true map is refused: %q", got)
	}
	files["internal/new/new.go"] = ""
	delete(files, "b.go")
	if got := offTheMap(files); len(got) != 2 {
		t.Errorf("got %q, want one package without a row, and one row without a file", got)
	}
}
