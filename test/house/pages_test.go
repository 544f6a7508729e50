package house_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mostPageWords is how many words the pages of docs/ and docs/guarantees/ have together. It may only fall: what a
// page gains, another gives up. docs/decisions and docs/benchmarks are history and figures.
const mostPageWords = 39999

var countedPage = regexp.MustCompile(`^docs/(guarantees/)?[^/]+\.md$`)

func TestPagesGetNoLonger(t *testing.T) {
	switch n := pageWords(everyFile(t)); {
	case n > mostPageWords:
		t.Errorf("the pages of docs have %d words, and may have %d: say it shorter, or link to where it stands already", n, mostPageWords)
	case n < mostPageWords-mostPageWords/100:
		t.Errorf("the pages of docs have %d words, so the figure %d must fall to that", n, mostPageWords)
	}
}

func pageWords(files map[string]string) (n int) {
	for name, text := range files {
		if countedPage.MatchString(name) {
			n += len(strings.Fields(text))
		}
	}
	return n
}

// walked is a name of the code in the sections of docs/architecture.md that tell what calls what.
var walked = regexp.MustCompile("`([A-Za-z][A-Za-z_]*\\.)?([A-Za-z_]+)`")

func TestWalksNameWhatTheCodeDeclares(t *testing.T) { report(t, wrongWalks(everyFile(t))) }

// wrongWalks reports names in the walks that no file of the library or script has any more.
func wrongWalks(files map[string]string) (problems []string) {
	names, _ := namesOfTheCode(files)
	for section := range strings.SplitSeq(files[architecture], "\n## ") {
		head, text, _ := strings.Cut(section, "\n")
		if !strings.HasPrefix(head, "Walk of") {
			continue
		}
		for _, m := range walked.FindAllStringSubmatch(text, -1) {
			if !names[strings.ToLower(m[2])] {
				problems = append(problems, fmt.Sprintf("%s, %s: %s is declared nowhere", architecture, head, m[0]))
			}
		}
	}
	slices.Sort(problems)
	return problems
}

func TestRulesOfPagesCanFail(t *testing.T) {
	files := map[string]string{
		"docs/a.md": "one two", "docs/guarantees/b.md": "three", "docs/decisions/c.md": "four", "README.md": "five",
		"a.go":       "package a\n\ntype Lock struct{}\n\nfunc (l *Lock) Lock() {}\n",
		architecture: "# A\n`gone`\n\n## Walk of a lock\n`Lock.Lock` runs `Lock.gone`.\n",
	}
	if n := pageWords(files); n != 3+len(strings.Fields(files[architecture])) {
		t.Errorf("%d words were counted", n)
	}
	if got := wrongWalks(files); len(got) != 1 {
		t.Errorf("got %q, want one name that is declared nowhere", got)
	}
	files["docs/a.md"] = "[a][one] and [b][two]\n\n[one]: https://a.b/c [two]: https://a.b/d\n"
	if got := undefinedLinks(files); len(got) != 2 {
		t.Errorf("got %q, want two links that one line defines", got)
	}
}

var (
	reference  = regexp.MustCompile(`\]\[([a-z][a-z0-9-]*)\]`)
	definition = regexp.MustCompile(`(?m)^\[([a-z][a-z0-9-]*)\]:\s+\S+$`)
)

func TestPagesDefineTheLinksThatTheyReferTo(t *testing.T) { report(t, undefinedLinks(everyFile(t))) }

// undefinedLinks reports [text][name] on a page that has no line [name]: address, which a reader sees as brackets.
func undefinedLinks(files map[string]string) (problems []string) {
	for name, text := range files {
		if !strings.HasSuffix(name, ".md") {
			continue
		}
		text = codeSpan.ReplaceAllString(fence.ReplaceAllString(text, ""), "")
		defined := map[string]bool{}
		for _, m := range definition.FindAllStringSubmatch(text, -1) {
			defined[m[1]] = true
		}
		for _, m := range reference.FindAllStringSubmatch(text, -1) {
			if !defined[m[1]] {
				problems = append(problems, name+" refers to "+m[1]+", which has no line of its own")
			}
		}
	}
	slices.Sort(problems)
	return problems
}
