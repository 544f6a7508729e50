package mutation

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
)

// Code is a source tree. It parses each package once, so the files must not change while it is used.
type Code struct {
	files fs.FS

	mu       sync.Mutex
	packages map[string]parsed
}

// NewCode returns the source tree with the repository's root at the root of files.
func NewCode(files fs.FS) *Code { return &Code{files: files, packages: map[string]parsed{}} }

// parsed holds the declarations of a package by name. A name has several where files are for
// different platforms, and "import" has one for each file.
type parsed map[string][]declaration

// declaration is a piece of a file, as tokens.
type declaration struct {
	file, text string
	tokens     []tok
}

// without replaces old in each of the named declarations.
func (c *Code) without(folder string, names []string, old, instead string) (changed map[string]string, err error) {
	declared, err := c.pkg(folder)
	if err != nil {
		return nil, err
	}
	pattern := scan(old)
	if len(pattern) == 0 {
		return nil, errors.New("nothing to take out")
	}
	texts, edits := map[string]string{}, map[string][]edit{}
	for _, name := range names {
		name = strings.TrimSpace(name)
		found := false
		for _, d := range declared[name] {
			for _, e := range replacements(pattern, d, instead) {
				found = true
				texts[d.file] = d.text
				edits[d.file] = append(edits[d.file], e)
			}
		}
		switch {
		case len(declared[name]) == 0:
			return nil, fmt.Errorf("no declaration %s in %s", name, folder)
		case !found:
			return nil, fmt.Errorf("%s in %s does not match: %s", name, folder, old)
		}
	}
	for file, es := range edits {
		slices.SortFunc(es, func(a, b edit) int { return b.from - a.from })
		text := texts[file]
		for _, e := range es { // from the last to the first: the offsets before an edit stay right
			text = text[:e.from] + e.instead + text[e.to:]
		}
		texts[file] = text
	}
	return texts, nil
}

// pkg returns the declarations in a folder.
func (c *Code) pkg(folder string) (parsed, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p, ok := c.packages[folder]; ok {
		return p, nil
	}
	names, err := fs.Glob(c.files, path.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	p := parsed{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if err := p.file(c.files, name); err != nil {
			return nil, err
		}
	}
	c.packages[folder] = p
	return p, nil
}

// file adds the declarations of a file.
func (p parsed) file(files fs.FS, name string) error {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return err
	}
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	tokens := scan(string(text))
	add := func(of string, n ast.Node) {
		from, to := set.Position(n.Pos()).Offset, set.Position(n.End()).Offset
		first, _ := slices.BinarySearchFunc(tokens, from, func(t tok, at int) int { return t.from - at })
		last, _ := slices.BinarySearchFunc(tokens, to, func(t tok, at int) int { return t.from - at })
		p[of] = append(p[of], declaration{name, string(text), tokens[first:last]})
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			add(functionName(d), d)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				var n ast.Node = s
				if !d.Lparen.IsValid() {
					n = d // with its keyword
				}
				for _, of := range specNames(s) {
					add(of, n)
				}
			}
		}
	}
	return nil
}

// functionName is the name of a function, or Receiver.Method, without type parameters.
func functionName(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	of := d.Recv.List[0].Type
	for {
		switch t := of.(type) {
		case *ast.StarExpr:
			of = t.X
		case *ast.ParenExpr:
			of = t.X
		case *ast.IndexExpr:
			of = t.X
		case *ast.IndexListExpr:
			of = t.X
		case *ast.Ident:
			return t.Name + "." + d.Name.Name
		default:
			return d.Name.Name
		}
	}
}

// specNames are what a declaration outside of functions declares.
func specNames(s ast.Spec) (names []string) {
	switch s := s.(type) {
	case *ast.ImportSpec:
		return []string{"import"}
	case *ast.TypeSpec:
		return []string{s.Name.Name}
	case *ast.ValueSpec:
		for _, n := range s.Names {
			names = append(names, n.Name)
		}
	}
	return names
}
