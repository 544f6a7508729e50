package house_test

import (
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
