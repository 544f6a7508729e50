package mutation_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// drawEnv is the seed with which TestDrawOfPromises draws: RELOCK_DRAW=20261126.
const drawEnv = "RELOCK_DRAW"

// documented are the packages whose exported symbols promise something.
var documented = []string{".", "redisson", "relocktest", "relockweb", "otelrelock", "fence", "contrib/cron", "contrib/gocron"}

// A sentence is one of the documentation, and where it stands.
type sentence struct{ at, text string }

// TestDrawOfPromises draws sentences by which to look for promises that no test holds: each that
// promises something is broken by one small change that is not in the table, and a suite has to fail.
// It draws 60, so that 40 are left when those that promise nothing are passed over.
// docs/decisions says what came of the draws.
func TestDrawOfPromises(t *testing.T) {
	all := sentences(t)
	if len(all) < 500 {
		t.Fatalf("%d sentences, want all of the documentation", len(all))
	}
	seed, err := strconv.ParseUint(os.Getenv(drawEnv), 10, 64)
	if err != nil {
		t.Skipf("one of %d sentences is drawn with a seed in %s only", len(all), drawEnv)
	}
	for i, s := range drawn(all, seed, 60) {
		t.Logf("%2d %s: %s", i+1, s.at, s.text)
	}
}

// A draw can be repeated, else nobody could tell what it has left out.
func TestDrawIsOfItsSeed(t *testing.T) {
	all := sentences(t)
	if first, again := drawn(all, 7, 40), drawn(all, 7, 40); !slices.Equal(first, again) {
		t.Error("one seed has drawn different sentences")
	}
	if first, other := drawn(all, 7, 40), drawn(all, 8, 40); slices.Equal(first, other) {
		t.Error("two seeds have drawn the same sentences")
	}
}

// drawn are n different sentences.
func drawn(all []sentence, seed uint64, n int) (some []sentence) {
	for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(len(all))[:n] {
		some = append(some, all[i])
	}
	return some
}

// sentences are those of the guarantees and of all that is exported.
func sentences(t *testing.T) (all []sentence) {
	t.Helper()
	pages, err := filepath.Glob("docs/guarantees/*.md")
	if err != nil || len(pages) < 5 {
		t.Fatalf("%d pages of guarantees: %v", len(pages), err)
	}
	for _, page := range append([]string{"docs/guarantees.md"}, pages...) {
		all = append(all, promises(t, page)...)
	}
	for _, dir := range documented {
		all = append(all, exported(t, dir)...)
	}
	return all
}

// promises are the sentences of a page of guarantees. A cell of a table and a paragraph are whole texts:
// their lines are joined before they are split.
func promises(t *testing.T, page string) (all []sentence) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	told, _, _ := strings.Cut(string(text), "## What is tested, and what is not")
	var paragraph strings.Builder
	for line := range strings.Lines(told) {
		switch {
		case strings.HasPrefix(line, "|--"):
		case strings.HasPrefix(line, "|"):
			for cell := range strings.SplitSeq(strings.Trim(strings.TrimSpace(line), "|"), "|") {
				all = append(all, split(page, cell)...)
			}
		case strings.HasPrefix(line, "#"):
			paragraph.WriteString("\n")
		default:
			paragraph.WriteString(line)
		}
	}
	return append(all, split(page, paragraph.String())...)
}

// exported are the sentences of a package's documentation.
func exported(t *testing.T, dir string) (all []sentence) {
	t.Helper()
	fset := token.NewFileSet()
	packages, err := parser.ParseDir(fset, dir, func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }, parser.ParseComments) //nolint:staticcheck // no build tags matter here
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range packages {
		d := doc.New(p, dir, 0)
		all = append(all, split(name, d.Doc)...)
		values := func(vs []*doc.Value) {
			for _, v := range vs {
				all = append(all, split(name+"."+v.Names[0], v.Doc)...)
				all = append(all, within(name, v.Decl)...)
			}
		}
		funcs := func(of string, fs []*doc.Func) {
			for _, f := range fs {
				all = append(all, split(of+"."+f.Name, f.Doc)...)
			}
		}
		values(d.Consts)
		values(d.Vars)
		funcs(name, d.Funcs)
		for _, typ := range d.Types {
			of := name + "." + typ.Name
			all = append(all, split(of, typ.Doc)...)
			all = append(all, within(of, typ.Decl)...)
			values(typ.Consts)
			values(typ.Vars)
			funcs(name, typ.Funcs)
			funcs(of, typ.Methods)
		}
	}
	return all
}

// within are the sentences of exported fields, methods and values inside a declaration.
func within(of string, decl *ast.GenDecl) (all []sentence) {
	ast.Inspect(decl, func(n ast.Node) bool {
		var names []*ast.Ident
		var comment *ast.CommentGroup
		switch n := n.(type) {
		case *ast.Field:
			names, comment = n.Names, n.Doc
			if comment == nil {
				comment = n.Comment
			}
		case *ast.ValueSpec:
			names, comment = n.Names, n.Doc
			if comment == nil {
				comment = n.Comment
			}
		}
		if len(names) > 0 && names[0].IsExported() {
			all = append(all, split(of+"."+names[0].Name, comment.Text())...)
		}
		return true
	})
	return all
}

// ends is where a sentence ends.
var ends = regexp.MustCompile(`[.?!]\s+|\n\s*\n`)

// split takes a text apart, and leaves out code and what is no sentence.
func split(at, text string) (all []sentence) {
	var prose []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "\t") && !strings.HasPrefix(line, "    ") {
			prose = append(prose, line)
		}
	}
	for _, s := range ends.Split(strings.Join(prose, ""), -1) {
		s = strings.Join(strings.Fields(s), " ")
		if len(strings.Fields(s)) > 4 && !strings.HasPrefix(s, "`Test") {
			all = append(all, sentence{at, s})
		}
	}
	return all
}
