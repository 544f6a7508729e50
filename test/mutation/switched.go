package mutation

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// SwitchEnv names the rule that code of Switched leaves out, by its number in the list. Without it no rule is left out.
const SwitchEnv = "RELOCK_WITHOUT"

// Switched returns code that has all rules and can leave out each of them, so that one build serves them all: each
// function that a rule changes begins with a jump to a changed copy of it. switched has the numbers of the rules that
// the code can leave out. The others change something else than functions of Go, or functions that a copy of them
// could not stand for.
func Switched(code *Code, rules []Rule) (files map[string]string, switched map[int]bool, err error) {
	edits, texts, switched := map[string][]edit{}, map[string]string{}, map[int]bool{}
	for n, r := range rules {
		changes, err := code.copies(r, n)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", r.Name, err)
		}
		for _, c := range changes {
			texts[c.file] = c.text
			edits[c.file] = append(edits[c.file], c.edits...)
			switched[n] = true
		}
	}
	files = map[string]string{}
	for file, text := range texts {
		files[file] = apply(text, edits[file])
		f, err := parser.ParseFile(token.NewFileSet(), "", text, parser.PackageClauseOnly)
		if err != nil {
			return nil, nil, err
		}
		files[path.Join(path.Dir(file), "without.go")] = fmt.Sprintf(chooser, f.Name.Name, SwitchEnv)
	}
	return files, switched, code.scripts(rules, files, switched)
}

// chooser is added to each package with changed copies.
const chooser = "package %s\n\nimport \"os\"\n\nvar relockWithout = os.Getenv(%q)\n"

// scripts adds the changed Lua scripts to files: for rule n, in a folder without<n> beside the script.
func (c *Code) scripts(rules []Rule, files map[string]string, switched map[int]bool) error {
	for n, r := range rules {
		if path.Ext(r.In) != ".lua" {
			continue
		}
		changed, err := r.Without(c)
		if err != nil {
			return fmt.Errorf("%s: %w", r.Name, err)
		}
		folder, name := path.Split(r.In)
		files[path.Join(folder, fmt.Sprintf("without%d", n), name)] = changed[r.In]
		loader, err := fs.ReadFile(c.files, path.Join(folder, "lua.go"))
		if err != nil {
			return err
		}
		text := strings.Replace(string(loader), "import \"embed\"\n", "import (\n\"embed\"\n\"io/fs\"\n\"os\"\n)\n", 1)
		before, _, found := strings.Cut(text, "//go:embed *.lua\nvar FS embed.FS\n")
		if !found {
			return fmt.Errorf("%slua.go does not embed its scripts as FS", folder)
		}
		files[path.Join(folder, "lua.go")] = before + fmt.Sprintf(embedding, SwitchEnv)
		switched[n] = true
	}
	return nil
}

// embedding stands in lua.go instead of what embeds the scripts alone.
const embedding = `
//go:embed *.lua without*
var embedded embed.FS

var FS choice

type choice struct{}

func (choice) Open(name string) (fs.File, error) {
	if f, err := embedded.Open("without" + os.Getenv(%q) + "/" + name); err == nil {
		return f, nil
	}
	return embedded.Open(name)
}
`

// change is what one rule needs in one file.
type change struct {
	file, text string
	edits      []edit
}

// copies returns the jumps to the copies that rule n needs, and the copies; nothing if it cannot be switched.
func (c *Code) copies(r Rule, n int) (changes []change, err error) {
	folder, names, is := strings.Cut(r.In, " ")
	if !is {
		return nil, nil
	}
	declared, err := c.pkg(folder)
	if err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(names, ",") {
		for _, d := range declared[strings.TrimSpace(name)] {
			found := replacements(scan(r.Old), d, r.New)
			if len(found) == 0 {
				continue // of another platform
			}
			jump, changed, ok := copied(d, found, n)
			if !ok {
				return nil, nil
			}
			end := edit{from: len(d.text), to: len(d.text), instead: changed}
			changes = append(changes, change{d.file, d.text, append(jump, end)})
		}
	}
	return changes, nil
}

// copied returns the edits that make a declaration jump to its changed copy if rule n is left out, and that copy. ok is
// false if the declaration is no function, or one whose copy would do something else: it recovers, or asks for its own
// place on the stack, or the rule is in its signature.
func copied(d declaration, found []edit, n int) (jump []edit, changed string, ok bool) {
	from, to := d.tokens[0].from, d.tokens[len(d.tokens)-1].to
	text := d.text[from:to]
	set := token.NewFileSet()
	const head = "package p\n"
	f, err := parser.ParseFile(set, "", head+text, parser.SkipObjectResolution)
	if err != nil {
		return nil, "", false
	}
	fn, is := f.Decls[0].(*ast.FuncDecl)
	if !is || fn.Name.Name == "init" || fn.Name.Name == "main" || strings.Contains(text, "recover()") || strings.Contains(text, "runtime.Caller") {
		return nil, "", false
	}
	at := func(p token.Pos) int { return from + set.Position(p).Offset - len(head) } // in the file
	body, name := at(fn.Body.Lbrace)+1, at(fn.Name.End())
	if slices.ContainsFunc(found, func(e edit) bool { return e.from < body }) {
		return nil, "", false // the copy has another signature
	}
	suffix := fmt.Sprintf("_without%d", n)
	s := signature{at: at}
	call := s.call(fn, suffix)
	jump = append(s.edits, edit{body, body, fmt.Sprintf(" if relockWithout == \"%d\" { %s }; ", n, call)})
	copyOf := append(slices.Clone(found), edit{name, name, suffix})
	for i := range copyOf {
		copyOf[i].from -= from
		copyOf[i].to -= from
	}
	return jump, "\n" + apply(text, copyOf) + "\n", true
}

// signature gives names to parameters that have none, so that they can be passed on.
type signature struct {
	at    func(token.Pos) int
	edits []edit
	named int
}

// call returns the statements that end fn with the result of its copy.
func (s *signature) call(fn *ast.FuncDecl, suffix string) string {
	call := fn.Name.Name + suffix
	if fn.Recv != nil {
		call = s.names(fn.Recv)[0] + "." + call
	}
	if fn.Type.TypeParams != nil {
		call += "[" + strings.Join(s.names(fn.Type.TypeParams), ", ") + "]"
	}
	call += "(" + strings.Join(s.names(fn.Type.Params), ", ")
	if p := fn.Type.Params.List; len(p) > 0 {
		if _, variadic := p[len(p)-1].Type.(*ast.Ellipsis); variadic {
			call += "..."
		}
	}
	if fn.Type.Results == nil {
		return call + "); return"
	}
	return "return " + call + ")"
}

// names returns the names of the parameters.
func (s *signature) names(list *ast.FieldList) (names []string) {
	for _, field := range list.List {
		for _, id := range field.Names {
			if id.Name == "_" {
				id.Name = s.next()
				s.edits = append(s.edits, edit{s.at(id.Pos()), s.at(id.Pos()) + 1, id.Name})
			}
			names = append(names, id.Name)
		}
		if len(field.Names) == 0 {
			name := s.next()
			s.edits = append(s.edits, edit{s.at(field.Type.Pos()), s.at(field.Type.Pos()), name + " "})
			names = append(names, name)
		}
	}
	return names
}

func (s *signature) next() string {
	s.named++
	return fmt.Sprintf("passed%d", s.named)
}

// apply makes the edits in a text. Of several insertions at one place, the first comes first. Equal edits count once:
// each rule of a function gives the same names to its parameters.
func apply(text string, edits []edit) string {
	edits = slices.Clone(edits)
	slices.SortStableFunc(edits, func(a, b edit) int { return a.from - b.from })
	var out strings.Builder
	end := 0
	for i, e := range edits {
		if slices.Contains(edits[:i], e) {
			continue
		}
		out.WriteString(text[end:e.from])
		out.WriteString(e.instead)
		end = e.to
	}
	return out.String() + text[end:]
}
