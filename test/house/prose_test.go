package house_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Plain English, as far as a machine can tell. The figures are how many places of each kind there may be: they may
// only fall, and a rule whose figure is zero holds without exceptions.
var mostUnplain = map[string]int{
	"page: phrase": 0, "page: long sentence": 0, "page: long line": 0, "page: long cell": 0,
	"comment: phrase": 0, "comment: long sentence": 0,
	"inner comment: phrase": 2,
}

const (
	longSentenceOfPage    = 30
	longSentenceOfComment = 25
	longLine              = 120
	longCell              = 200
)

// unplain is what readers have to translate: old words, and pronouns and clauses without a noun.
var unplain = regexp.MustCompile(`(?i)\b(?:(?:is|are|was|were) to be|anew|of late|in vain|whoever|wherever|belongs? into|but for|thereby|whence|` +
	`by itself alone)\b|(?:^|[.;:,] )(?:and |but )?who (?:asks|comes|waits|holds|has|is|gets|reads|writes|wants|looks|calls)\b`)

// dialect is what readers have to translate in comments inside the code, in addition to unplain.
var dialect = regexp.MustCompile(`(?i)\bthis file is (?:how|what|where)\b|\b(?:is|are|was|were|be|been) had\b|\bhad (?:too|before|since|for)\b|` +
	`\b(?:for|by|from|than|to|of|wakes|tells|delays|lets) who\b|\bwhat (?:came|comes) (?:meanwhile|since)\b|\btakes? note\b|` +
	`\bis of no (?:account|use)\b|\b(?:is|are|was|were) to (?:have|end|wait|know|go|come|hold|ask|hear|try)\b|, but that\b|` +
	`\bbeside the caller\b|\bof no other\b`)

func TestPublicTextIsPlain(t *testing.T) {
	found := unplainPlaces(everyFile(t))
	for kind, most := range mostUnplain {
		if n := len(found[kind]); n > most {
			t.Errorf("%s: %d places, and may be %d; write it as you would say it to a colleague:\n%s", kind, n, most, strings.Join(found[kind][:min(n, 20)], "\n"))
		} else if n < most {
			t.Errorf("%s: %d places, so the figure %d must fall to that", kind, n, most)
		}
	}
}

// unplainPlaces are the places that break a rule, by kind: in pages that users read, in comments of what users call, and
// in all comments of the code.
func unplainPlaces(files map[string]string) map[string][]string {
	found := map[string][]string{}
	note := func(kind, name, text string) { found[kind] = append(found[kind], name+": "+text) }
	for name, text := range files {
		switch {
		case pageOfUsers(name):
			judgePage(text, func(kind, text string) { note("page: "+kind, name, text) })
		case sourceOfUsers(name):
			for _, comment := range exportedComments(name, text) {
				judgeProse(comment, longSentenceOfComment, func(kind, text string) { note("comment: "+kind, name, text) })
			}
		}
		if sourceOfProduct(name) {
			for _, comment := range allComments(name, text) {
				judgeInner(comment, func(text string) { note("inner comment: phrase", name, text) })
			}
		}
	}
	for _, places := range found {
		slices.Sort(places)
	}
	return found
}

// pageOfUsers reports pages that are written by hand and are no history.
func pageOfUsers(name string) bool {
	return path.Ext(name) == ".md" && name != "CHANGELOG.md" && !strings.HasPrefix(name, "docs/decisions/") && !strings.HasPrefix(name, "docs/benchmarks/")
}

func sourceOfUsers(name string) bool {
	if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
		return false
	}
	top, _, inside := strings.Cut(name, "/")
	return !inside || (family[top] && path.Dir(name) != "redisson/interop" && !strings.Contains(name, "/internal/"))
}

// sourceOfProduct reports code that is no test and no tool for tests or benchmarks alone.
func sourceOfProduct(name string) bool {
	top, _, _ := strings.Cut(name, "/")
	return path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") && top != "test" && top != "bench"
}

// judgePage judges what a page says, without its code, and how its lines and tables are laid out.
func judgePage(text string, note func(kind, text string)) {
	code, prose := false, ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "```") {
			code, prose = !code, prose+"\n\n"
			continue
		}
		if code {
			continue
		}
		cells := strings.HasPrefix(line, "|")
		if n := len([]rune(line)); n > longLine && !cells && !strings.HasPrefix(strings.TrimLeft(line, "["), "!") && strings.Contains(strings.TrimSpace(line), " ") { // a picture is one line
			note("long line", fmt.Sprintf("%d characters: %.60s", n, line))
		}
		if cells {
			for cell := range strings.SplitSeq(line, " | ") {
				if n := len([]rune(cell)); n > longCell {
					note("long cell", fmt.Sprintf("%d characters: %.60s", n, cell))
				}
			}
			line = "\n\n" + strings.ReplaceAll(line, "|", "\n\n")
		}
		if strings.HasPrefix(line, "#") || strings.HasPrefix(strings.TrimSpace(line), "- ") {
			line = "\n\n" + line
		}
		prose += line + "\n"
	}
	judgeProse(prose, longSentenceOfPage, note)
}

var (
	endOfSentence = regexp.MustCompile(`[.!?:;](?:["')\]*]*)\s|\n\s*\n|$`)
	tests         = regexp.MustCompile("`Test\\w+`,?|\\[[^\\]]*\\]\\([^)]*\\)|`[^`]*`")
)

// judgeProse finds phrases and long sentences. A piece of code and a link count as one word each.
func judgeProse(text string, longest int, note func(kind, text string)) {
	text = tests.ReplaceAllString(text, "x")
	for begin := 0; begin < len(text); {
		end := endOfSentence.FindStringIndex(text[begin:])
		sentence := strings.Join(strings.Fields(text[begin:begin+end[1]]), " ")
		if n := len(strings.Fields(sentence)); n > longest {
			note("long sentence", fmt.Sprintf("%d words: %.80s", n, sentence))
		}
		for _, m := range unplain.FindAllString(sentence, -1) {
			note("phrase", fmt.Sprintf("%q in %.80s", m, sentence))
		}
		if begin += end[1]; end[1] == 0 {
			break
		}
	}
}

// judgeInner finds the phrases of old comments. How long their sentences are is for reviewers.
func judgeInner(comment string, note func(text string)) {
	comment = strings.Join(strings.Fields(tests.ReplaceAllString(comment, "x")), " ")
	for _, list := range []*regexp.Regexp{unplain, dialect} {
		for _, at := range list.FindAllStringIndex(comment, -1) {
			note(fmt.Sprintf("%q in %.80s", comment[at[0]:at[1]], comment[max(0, at[0]-30):]))
		}
	}
}

// allComments are all comments of a file, without the code in them.
func allComments(name, text string) (all []string) {
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments)
	if err != nil {
		return nil
	}
	for _, g := range file.Comments {
		all = append(all, withoutCode(g.Text()))
	}
	return all
}

// exportedComments are the comments that go doc shows of a file.
func exportedComments(name, text string) (all []string) {
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments)
	if err != nil {
		return nil
	}
	add := func(groups ...*ast.CommentGroup) {
		for _, g := range groups {
			if g != nil {
				all = append(all, withoutCode(g.Text()))
			}
		}
	}
	add(file.Doc)
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() {
				add(d.Doc)
			}
		case *ast.GenDecl:
			add(d.Doc)
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() {
						add(s.Doc)
						add(fieldsOf(s)...)
					}
				case *ast.ValueSpec:
					if s.Names[0].IsExported() {
						add(s.Doc, s.Comment)
					}
				}
			}
		}
	}
	return all
}

func fieldsOf(s *ast.TypeSpec) (docs []*ast.CommentGroup) {
	var fields *ast.FieldList
	switch t := s.Type.(type) {
	case *ast.StructType:
		fields = t.Fields
	case *ast.InterfaceType:
		fields = t.Methods
	default:
		return nil
	}
	for _, f := range fields.List {
		if len(f.Names) > 0 && f.Names[0].IsExported() {
			docs = append(docs, f.Doc, f.Comment)
		}
	}
	return docs
}

// withoutCode is a comment without its indented lines.
func withoutCode(text string) string {
	var kept strings.Builder
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "\t"):
			kept.WriteString("\n\n")
		case strings.HasPrefix(line, "  - "), strings.HasPrefix(line, "#"):
			kept.WriteString("\n\n" + line)
		default:
			kept.WriteString(line)
		}
	}
	return kept.String()
}

func TestRuleOfPlainTextCanFail(t *testing.T) {
	long := strings.Repeat("word ", longSentenceOfPage+1) + "end."
	files := map[string]string{
		"docs/a.md": "# A\n\nWhoever waits.\nIt is to be done. Who asks first gets it.\n\n" + long + "\n\n| a | " + strings.Repeat("x", longCell+1) + " |\n",
		"a.go":      "// Package a is anew.\npackage a\n\n// F is " + long + "\nfunc F() {}\n\n// g is anew.\nfunc g() { // for who waits\n}\n",
		"docs/b.md": "# B\n\nRedis grants the lock to the next waiter. `whoever` is code.\n",
	}
	found := unplainPlaces(files)
	for kind, want := range map[string]int{"page: phrase": 3, "page: long sentence": 1, "page: long line": 1, "page: long cell": 1, "comment: phrase": 1, "comment: long sentence": 1, "inner comment: phrase": 3} {
		if got := len(found[kind]); got != want {
			t.Errorf("%s: %d places, want %d: %q", kind, got, want, found[kind])
		}
	}
}
