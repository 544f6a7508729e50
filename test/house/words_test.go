package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

const wordsPage = "docs/words.md"

// TestWordsAreThoseOfTheCode holds docs/words.md against the code: each word's names are
// declared there, and what has been given up is in no name any more.
func TestWordsAreThoseOfTheCode(t *testing.T) { report(t, wrongWords(everyFile(t))) }

var (
	wordRow   = regexp.MustCompile("(?m)^\\| ([^|`]+) \\| ([^|]+) \\|(?: (`[^|]+) \\|)?$")
	camelPart = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)
	luaName   = regexp.MustCompile(`[a-z_]+`)
)

// wrongWords reports words of the page that are no names of the code, and words that it
// has given up and that still are.
func wrongWords(files map[string]string) (problems []string) {
	names, parts := namesOfTheCode(files)
	page, givenUp, _ := strings.Cut(files[wordsPage], "## Given up")
	rows := wordRow.FindAllStringSubmatch(page, -1)
	if len(rows) == 0 {
		problems = append(problems, wordsPage+" has no words")
	}
	seen := map[string]bool{}
	for _, row := range rows {
		word := row[1]
		if word == "word" || strings.HasPrefix(word, "--") {
			continue
		}
		if seen[word] {
			problems = append(problems, wordsPage+" has two meanings of "+word)
		}
		seen[word] = true
		for _, span := range codeSpan.FindAllString(row[3], -1) {
			if name := strings.Trim(span, "`"); !names[strings.ToLower(name)] {
				problems = append(problems, wordsPage+": "+name+" is declared nowhere")
			}
		}
		if row[3] == "" {
			problems = append(problems, wordsPage+" does not say what the code calls "+word)
		}
	}
	for _, row := range wordRow.FindAllStringSubmatch(givenUp, -1) {
		if file := parts[row[1]]; file != "" && row[1] != "word" {
			problems = append(problems, file+" has a name with "+row[1]+", which has been given up: say "+row[2])
		}
	}
	return problems
}

// namesOfTheCode are all that Go declares outside of tests and what is for them, and all
// words of the scripts: names in lower case, and their parts with a file that has them.
func namesOfTheCode(files map[string]string) (names map[string]bool, parts map[string]string) {
	names, parts = map[string]bool{}, map[string]string{}
	for file, text := range files {
		switch {
		case strings.HasPrefix(file, "lua/") && strings.HasSuffix(file, ".lua"):
			for _, name := range luaName.FindAllString(text, -1) {
				names[name] = true
			}
		case ofTheLibrary(file):
			f, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
			if err != nil {
				continue // the compiler says so
			}
			for _, name := range declared(f) {
				names[strings.ToLower(name)] = true
				for _, part := range camelPart.FindAllString(name, -1) {
					parts[strings.ToLower(part)] = file
				}
			}
		}
	}
	return names, parts
}

// ofTheLibrary tells the files that users run from those of tests and tools.
func ofTheLibrary(file string) bool {
	if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
		return false
	}
	first, rest, nested := strings.Cut(file, "/")
	if !nested {
		return true
	}
	second, _, _ := strings.Cut(rest, "/")
	return first == "internal" && second != "redistest" && second != "rig" && second != "seam" && second != "spawn"
}

// declared are the names that a file gives to anything.
func declared(f *ast.File) (names []string) {
	add := func(ids ...*ast.Ident) {
		for _, id := range ids {
			names = append(names, id.Name)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			add(n.Name)
		case *ast.TypeSpec:
			add(n.Name)
		case *ast.Field:
			add(n.Names...)
		case *ast.ValueSpec:
			add(n.Names...)
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				if id, ok := left.(*ast.Ident); ok && n.Tok == token.DEFINE {
					add(id)
				}
			}
		}
		return true
	})
	return append(names, f.Name.Name)
}

func TestWordRulesCanFail(t *testing.T) {
	files := map[string]string{
		"a.go":       "package a\n\ntype Room struct{ roomKey int }\n\nfunc f() { ticket := 1; _ = ticket }",
		"a_test.go":  "package a\n\nvar pile int",
		"lua/b.lua":  "local head = queue_head()",
		wordsPage:    "| word | what it is | in the code |\n|---|---|---|\n| room | x | `room`, `ticket` |\n| head | y | `head` |\n## Given up\n| word | say |\n|---|---|\n| pile | list |\n",
		"docs/x.md":  "pile",
		"test/c.go":  "package c\n\nvar pile int",
		"cmd/d/d.go": "package d\n\nvar pile int",
	}
	if got := wrongWords(files); len(got) > 0 {
		t.Errorf("true words are refused: %q", got)
	}
	files["internal/e/e.go"] = "package e\n\nfunc newPile() {}"
	files[wordsPage] = "| gone | x | `gone` |\n| room | x | `Room` |\n| nameless | z |\n" + files[wordsPage]
	if got := wrongWords(files); len(got) != 4 {
		t.Errorf("got %q, want one word that is nowhere, two with a second meaning, and one that was given up", got)
	}
}
