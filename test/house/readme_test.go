package house_test

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pageCode is a block of a page that shows code: what kind, and the code.
var pageCode = regexp.MustCompile("(?ms)^```(go|sql|diff)\n(.*?\n)```$")

// beyond is what a diff removes and no test can have: Java, and a module that the Go proxy
// does not give.
var beyond = regexp.MustCompile(`;\n|NewRedisLocker\(`)

func TestCodeOfPagesIsTested(t *testing.T) { report(t, untestedCode(everyFile(t))) }

// untestedCode reports code that a page, or the comment of package relocktest, shows and
// that is not a piece of a test: what compiles and runs cannot rot. A piece is lines that
// follow each other, at whatever depth. Of a diff both what was there and what is there
// now are such pieces, but where what was there cannot be compiled here.
func untestedCode(files map[string]string) (problems []string) {
	var tests []string
	for name, text := range files {
		if strings.HasSuffix(name, "_test.go") || name == "test/recipes/shortest/main.go" { // a test runs that program
			tests = append(tests, "\n"+flat(text))
		}
	}
	tested := func(code string) bool {
		return slices.ContainsFunc(tests, func(text string) bool { return strings.Contains(text, "\n"+flat(code)) })
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for _, code := range shown(name, files[name]) {
			if !tested(code) {
				problems = append(problems, name+" shows code that is no piece of a test:\n"+code)
			}
		}
	}
	return problems
}

// shown is the code that a file shows to readers.
func shown(name, text string) (all []string) {
	switch {
	case name == "relocktest/doc.go":
		code := ""
		for line := range strings.Lines(text) {
			if inside, is := strings.CutPrefix(line, "//\t"); is {
				code += inside
			}
		}
		return []string{code}
	case path.Ext(name) != ".md":
		return nil
	}
	for _, block := range pageCode.FindAllStringSubmatch(text, -1) {
		if block[1] != "diff" {
			all = append(all, block[2])
			continue
		}
		was, is := bothSides(block[2])
		if all = append(all, is); !beyond.MatchString(was) {
			all = append(all, was)
		}
	}
	return all
}

// bothSides divides a diff into what was there and what is there now.
func bothSides(diff string) (was, is string) {
	for line := range strings.Lines(diff) {
		switch line[0] {
		case '-':
			was += line[1:]
		case '+':
			is += line[1:]
		default:
			was += line[1:]
			is += line[1:]
		}
	}
	return was, is
}

// flat is code without its indents and empty lines.
func flat(code string) string {
	var b strings.Builder
	for line := range strings.Lines(code) {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

func TestRuleOfCodeOfPagesCanFail(t *testing.T) {
	files := map[string]string{
		"a_test.go": "package a\n\nfunc before() {\n\told()\n\tboth()\n}\n\nfunc after() {\n\tboth()\n\n\tor()\n\tfresh()\n}\n",
		"good.md":   "```go\nboth()\nfresh()\n```\n\n```diff\n-old()\n both()\n+fresh()\n```\n\n```diff\n-old(a);\n both()\n+fresh()\n```\n\n```sh\nls\n```\n",
	}
	if got := untestedCode(files); len(got) == 0 {
		t.Error("a diff whose later side is nowhere is allowed")
	}
	files["a_test.go"] += "\nfunc later() {\n\tboth()\n\tfresh()\n}\n"
	if got := untestedCode(files); len(got) > 0 {
		t.Errorf("the good page is refused: %q", got)
	}
	files["relocktest/doc.go"] = "// Package x.\n//\n//\tboth()\n//\tgone()\npackage x\n"
	files["bad.md"] = "```go\nold()\nfresh()\n```\n\n```go\nresh()\n```\n\n```sql\nSELECT 1\n```\n\n```diff\n-fresh()\n+old()\n both()\n```\n"
	if got := untestedCode(files); len(got) != 5 {
		t.Errorf("got %q, want the comment, three blocks, and what was there in the diff", got)
	}
}
