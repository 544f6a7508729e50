package house_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A type that is longer may be in two files, the second of which begins with its name.
const longestType = 700

func TestTypeIsInOneFile(t *testing.T) { report(t, scattered(everyFile(t), inFiles)) }

// scattered reports types that are in more files than the table says, and rows that must fall.
func scattered(files map[string]string, most map[string]int) (problems []string) {
	found := map[string]int{}
	for name, d := range typesOf(files) {
		n := len(d.files)
		if n < 2 || n == 2 && d.lines > longestType && slices.ContainsFunc(slices.Collect(maps.Keys(d.files)), d.beginsWithName) {
			continue
		}
		found[name] = n
		if n > max(most[name], 1) {
			problems = append(problems, fmt.Sprintf("%s is in %d files, and may be in %d: %s", name, n, max(most[name], 1), slices.Sorted(maps.Keys(d.files))))
		}
	}
	for name, n := range most {
		if found[name] < n {
			problems = append(problems, fmt.Sprintf("%s is in %d files, so its row of %d in inFiles must fall to that, or go", name, max(found[name], 1), n))
		}
	}
	slices.Sort(problems)
	return problems
}

// typeOf is a type, with the files of its declaration and its methods, and how long these are.
type typeOf struct {
	name  string
	files map[string]bool
	lines int
}

// beginsWithName reports a file like client_close.go, for Client.
func (d typeOf) beginsWithName(file string) bool {
	return strings.HasPrefix(path.Base(file), strings.ToLower(d.name)+"_")
}

// platform ends the names of files that say the same for different systems: such files count as one.
var platform = regexp.MustCompile(`_(linux|darwin|freebsd|windows|unix|other)\.go$`)

// typesOf are the types of the library, by package and name.
func typesOf(files map[string]string) map[string]*typeOf {
	types := map[string]*typeOf{}
	for _, d := range declarations(files) {
		name := d.receiver
		if _, is := d.node.(*ast.TypeSpec); is {
			name = d.name
		}
		if name == "" {
			continue
		}
		key := d.pkg + "." + name
		if types[key] == nil {
			types[key] = &typeOf{name: name, files: map[string]bool{}}
		}
		types[key].files[platform.ReplaceAllString(d.file, ".go")] = true
		types[key].lines += d.lines
	}
	return types
}

// topLevel is a function, a method or a type of the library.
type topLevel struct {
	pkg, file, receiver, name string
	lines                     int
	node                      ast.Node
}

func declarations(files map[string]string) (all []topLevel) {
	for file, text := range files {
		if !production(file) {
			continue
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, file, text, parser.SkipObjectResolution)
		if err != nil {
			continue // the compiler says so
		}
		add := func(receiver, name string, n ast.Node) {
			lines := set.Position(n.End()).Line - set.Position(n.Pos()).Line + 1
			all = append(all, topLevel{f.Name.Name, file, receiver, name, lines, n})
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				add(receiverOf(d), d.Name.Name, d)
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if s, is := s.(*ast.TypeSpec); is {
						add("", s.Name.Name, s)
					}
				}
			}
		}
	}
	return all
}

// receiverOf is the type whose method a function is, without its parameters.
func receiverOf(d *ast.FuncDecl) (name string) {
	if d.Recv == nil {
		return ""
	}
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, is := n.(*ast.Ident); is && name == "" {
			name = id.Name
		}
		return name == ""
	})
	return name
}

// usual are method names that mean the same everywhere, or that an interface asks for.
var usual = []string{"Close", "Err", "Error", "Is", "Lock", "Lost", "Name", "Release", "String", "Token", "Unlock", "Unwrap"}

// mostReceivers is how many types may have a method of one name.
const mostReceivers = 4

func TestMethodNamesMeanOneThing(t *testing.T) {
	report(t, heldPlaces(ceilings, map[string][]string{"method names of more than four types": shared(everyFile(t))}))
}

// shared are the method names of too many types, with these.
func shared(files map[string]string) (names []string) {
	receivers := map[string][]string{}
	for _, d := range declarations(files) {
		if d.receiver != "" && !slices.Contains(usual, d.name) {
			receivers[d.name] = append(receivers[d.name], d.pkg+"."+d.receiver)
		}
	}
	for name, of := range receivers {
		slices.Sort(of)
		if of = slices.Compact(of); len(of) > mostReceivers {
			names = append(names, fmt.Sprintf("%s: %s", name, strings.Join(of, ", ")))
		}
	}
	return names
}

func TestShapeRulesCanFail(t *testing.T) {
	files := map[string]string{
		"a.go":               "package a\n\ntype Lock[K any] struct{}\n\nfunc (l *Lock[K]) f() {}\n",
		"boot_linux.go":      "package a\n\ntype boot struct{}\n\nfunc (b boot) f() {}\n",
		"boot_other.go":      "package a\n\ntype boot struct{}\n\nfunc (b boot) f() {}\n",
		"b.go":               "package a\n\ntype client struct{}\n\nfunc (c client) f() {" + strings.Repeat("\n", longestType) + "}\n",
		"client_more.go":     "package a\n\nfunc (c client) Close() {}\n",
		"a_test.go":          "package a\n\nfunc (l *Lock[K]) g() {}\n",
		"internal/rig/a.go":  "package rig\n\ntype Rig int\n\nfunc (Rig) f() {}\n",
		"internal/room/a.go": "package room\n\ntype Lock int\n\nfunc (Lock) f() {}\n",
	}
	if got := scattered(files, nil); len(got) > 0 || len(shared(files)) > 0 {
		t.Errorf("types in one file, and one for each system, are refused: %q, %q", got, shared(files))
	}
	files["c.go"] = "package a\n\nfunc (l *Lock[K]) h() {}\n\ntype more struct{}\n\nfunc (more) f() {}\n"
	if got := scattered(files, nil); len(got) != 1 || len(shared(files)) != 1 {
		t.Errorf("got %q and %q, want Lock in two files, and f of five types", got, shared(files))
	}
	if got := scattered(files, map[string]int{"a.Lock": 2}); len(got) > 0 {
		t.Errorf("a row of the table does not count: %q", got)
	}
	if got := scattered(files, map[string]int{"a.Lock": 3, "a.gone": 2}); len(got) != 2 {
		t.Errorf("got %q, want two rows that must fall", got)
	}
}
