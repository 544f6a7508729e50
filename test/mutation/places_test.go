package mutation_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/relock-go/relock/test/mutation"
)

// placesRecord says where each promise of the guarantees is kept.
const placesRecord = "docs/decisions/0038-where-promises-are-kept.md"

// TestPromisesAreKeptWhereTheRecordSays keeps the record of places true: it names each promise, functions that exist,
// and for each of them a mutation that takes the promise's rule out there.
func TestPromisesAreKeptWhereTheRecordSays(t *testing.T) {
	guarantees, err := os.ReadFile("docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	record, err := os.ReadFile(placesRecord)
	if err != nil {
		t.Fatal(err)
	}
	rules := slices.Concat(mutation.All, mutation.Interop)
	problems, promises, places := placesProblems(os.DirFS("."), string(guarantees), string(record), rules)
	for _, problem := range problems {
		t.Error(problem)
	}
	if promises < 70 || places < 300 {
		t.Errorf("%d promises at %d places: this test has not read all of them", promises, places)
	}
}

var (
	promiseLink = regexp.MustCompile(`^\| \[.*\]\((guarantees/\w+\.md#[^)]+)\) \|$`)
	placeTitle  = regexp.MustCompile(`^### \[.*\]\(\.\./(guarantees/\w+\.md#[^)]+)\)$`)
	placeRow    = regexp.MustCompile("^\\| `([^`:]+)(?:: ([^`]+))?` \\| (.*) \\|$")
)

// placesProblems compares the record with the promises, with the code and with the mutations.
func placesProblems(files fs.FS, guarantees, record string, rules []mutation.Rule) (problems []string, promises, places int) {
	say := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	listed := map[string]int{} // places, by promise
	_, promised, _ := strings.Cut(guarantees, "## Promises")
	for line := range strings.Lines(promised) {
		if m := promiseLink.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			listed[m[1]] = 0
		}
	}
	code, named := mutation.NewCode(files), map[string]mutation.Rule{}
	for _, r := range rules {
		named[r.Name] = r
	}
	promise := ""
	for line := range strings.Lines(record) {
		line = strings.TrimSpace(line)
		if m := placeTitle.FindStringSubmatch(line); m != nil {
			if promise = m[1]; !hasKey(listed, promise) {
				say("%s: no such promise", promise)
			}
			continue
		}
		m := placeRow.FindStringSubmatch(line)
		if m == nil {
			if promise != "" && strings.HasPrefix(line, "| `") {
				say("%s: not a row of a place: %s", promise, line)
			}
			continue
		}
		places++
		listed[promise]++
		rule, is := named[m[3]]
		switch err := placed(files, code, m[1], m[2], rule); {
		case m[3] == "":
			say("%s: %s has no mutation", promise, m[1]+": "+m[2])
		case !is:
			say("%s: no mutation %q", promise, m[3])
		case err != nil:
			say("%s: %v", promise, err)
		}
	}
	for promise, n := range listed {
		if n == 0 {
			say("%s: no place is listed", promise)
		}
	}
	slices.Sort(problems)
	return problems, len(listed), places
}

func hasKey(m map[string]int, key string) bool {
	_, is := m[key]
	return is
}

// placed returns an error unless the file has the function, and the rule changes that. Without a function, the place is
// what a script does outside of its functions.
func placed(files fs.FS, code *mutation.Code, file, function string, r mutation.Rule) error {
	text, err := fs.ReadFile(files, file)
	if err != nil {
		return err
	}
	if strings.HasSuffix(file, ".lua") {
		return placedInScript(file, string(text), function, r)
	}
	if !declares(file, string(text), function) {
		return fmt.Errorf("%s declares no %s", file, function)
	}
	folder, names, _ := strings.Cut(r.In, " ")
	if folder != path.Dir(file) || !slices.Contains(strings.Split(strings.ReplaceAll(names, ", ", ","), ","), function) {
		return fmt.Errorf("%q does not change %s of %s, but %s", r.Name, function, file, r.In)
	}
	changed, err := r.Without(code)
	if err == nil && changed[file] == "" {
		err = fmt.Errorf("%q does not change %s", r.Name, file)
	}
	return err
}

// declares reports whether a Go file declares a function, Receiver.Method, or a constant, variable or type.
func declares(file, text, name string) bool {
	f, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
	if err != nil {
		return false
	}
	method := regexp.MustCompile(`(?m)^func \(\w+ \*?(\w+)(?:\[\w+\])?\) (\w+)`)
	for _, m := range method.FindAllStringSubmatch(text, -1) {
		if m[1]+"."+m[2] == name {
			return true
		}
	}
	found := false
	for _, d := range f.Decls {
		ast.Inspect(d, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				found = found || n.Recv == nil && n.Name.Name == name
				return false
			case *ast.ValueSpec:
				found = found || slices.ContainsFunc(n.Names, func(i *ast.Ident) bool { return i.Name == name })
			case *ast.TypeSpec:
				found = found || n.Name.Name == name
			}
			return true
		})
	}
	return found
}

var scriptFunction = regexp.MustCompile(`(?ms)^local function (\w+)\(.*?^end$`)

// placedInScript is placed for a script. A rule may take its text out at several places, of which one must be here.
func placedInScript(file, text, function string, r mutation.Rule) error {
	if r.In != file {
		return fmt.Errorf("%q does not change %s, but %s", r.Name, file, r.In)
	}
	inside, exists := make([]bool, len(text)), function == ""
	for _, m := range scriptFunction.FindAllStringSubmatchIndex(text, -1) {
		of := text[m[2]:m[3]]
		exists = exists || of == function
		for i := m[0]; i < m[1]; i++ {
			inside[i] = function == "" || of == function
		}
	}
	if !exists {
		return fmt.Errorf("%s has no function %s", file, function)
	}
	if r.Old == "" || !strings.Contains(text, r.Old) {
		return errors.New(file + " has no such text any more: " + r.Old)
	}
	for from := 0; ; {
		at := strings.Index(text[from:], r.Old)
		if at < 0 {
			return fmt.Errorf("%q does not change %s of %s", r.Name, function, file)
		}
		for i := from + at; i < from+at+len(r.Old); i++ {
			if inside[i] != (function == "") && !strings.ContainsRune(" \n", rune(text[i])) {
				return nil
			}
		}
		from += at + 1
	}
}

// A record that is wrong in one thing is told so.
func TestARecordOfPlacesCanBeWrong(t *testing.T) {
	files := fstest.MapFS{
		"a/a.go":  {Data: []byte("package a\n\nfunc (x *T) M() { keep() }\n\nfunc F() { keep() }\n")},
		"l/x.lua": {Data: []byte("local function f()\n  keep()\nend\nother()\n")},
	}
	rules := []mutation.Rule{
		{Name: "of m", In: "a T.M", Old: "keep()"},
		{Name: "of f", In: "l/x.lua", Old: "keep()"},
		{Name: "of x", In: "l/x.lua", Old: "other()"},
		{Name: "gone", In: "a T.M", Old: "kept()"},
	}
	const guarantees = "## Promises\n\n| [One.](guarantees/p.md#one) |\n| [Two.](guarantees/p.md#two) |\n"
	const right = "### [One](../guarantees/p.md#one)\n\n| `a/a.go: T.M` | of m |\n\n### [Two](../guarantees/p.md#two)\n\n| `l/x.lua: f` | of f |\n| `l/x.lua` | of x |\n"
	for _, c := range []struct{ old, instead, want string }{
		{"", "", ""},
		{"### [Two](../guarantees/p.md#two)\n", "", "#two: no place is listed"},
		{"| `a/a.go: T.M` | of m |\n", "", "#one: no place is listed"},
		{"p.md#two", "p.md#three", "#three: no such promise"},
		{"a/a.go: T.M", "a/a.go: T.N", "declares no T.N"},
		{"a/a.go: T.M", "a/b.go: T.M", "a/b.go"},
		{"a/a.go: T.M", "a/a.go: F", "does not change F"},
		{"l/x.lua: f", "l/x.lua: g", "no function g"},
		{"l/x.lua: f", "l/x.lua", "does not change"},
		{"`l/x.lua` | of x", "`l/x.lua: f` | of x", "does not change f"},
		{"of m", "of nobody", "no mutation \"of nobody\""},
		{"of m", "of f", "does not change T.M"},
		{"of m", "gone", "does not match"},
		{"| of m |", "|  |", "has no mutation"},
		{"| of m |", "of m |", "not a row"},
	} {
		problems, _, _ := placesProblems(files, guarantees, strings.Replace(right, c.old, c.instead, 1), rules)
		if got := strings.Join(problems, "; "); !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("%q for %q: %q, want %q", c.instead, c.old, got, c.want)
		}
	}
}
