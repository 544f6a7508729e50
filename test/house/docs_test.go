package house_test

import (
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

var (
	codeSpan   = regexp.MustCompile("`[^`\n]+`")
	testName   = regexp.MustCompile(`\b(?:Test|Example|Benchmark|Fuzz)[A-Z]\w*`)
	testFunc   = regexp.MustCompile(`(?m)^func ((?:Test|Example|Benchmark|Fuzz)\w*)\(`)
	link       = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	fence      = regexp.MustCompile("(?ms)^```.*?^```")
	heading    = regexp.MustCompile(`(?m)^#+ +(.*?) *$`)
	notInSlug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	machine    = regexp.MustCompile(`(?:^|[^\w./-])/(?:work|root|tmp|home)/`)
	mayMention = map[string]bool{"test/house/docs_test.go": true} // the rule itself
)

// everyFile is the text of every file of the repository, nested modules
// included.
func everyFile(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for name := range walk(t, func(string) bool { return false }) {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(b)
	}
	return files
}

func report(t *testing.T, problems []string) {
	t.Helper()
	for _, p := range problems {
		t.Error(p)
	}
}

func TestDocsNameTestsThatExist(t *testing.T)    { report(t, namedTests(everyFile(t))) }
func TestDocsLinkToFilesThatExist(t *testing.T)  { report(t, brokenLinks(everyFile(t))) }
func TestFilesNameNoPathOfAMachine(t *testing.T) { report(t, machinePaths(everyFile(t))) }

// mostReadmeWords is how much a stranger reads before trying relock.
const mostReadmeWords = 900

func TestReadmeIsShort(t *testing.T) {
	if n := len(strings.Fields(everyFile(t)["README.md"])); n == 0 || n > mostReadmeWords {
		t.Errorf("README.md has %d words, and may have 1 to %d", n, mostReadmeWords)
	}
}

func TestDependabotLooksAtEveryModule(t *testing.T) {
	files := everyFile(t)
	for name := range files {
		if path.Base(name) != "go.mod" {
			continue
		}
		if dir := path.Join("/", path.Dir(name)); !strings.Contains(files[".github/dependabot.yml"], "directory: "+dir+"\n") {
			t.Errorf(".github/dependabot.yml does not look at %s", dir)
		}
	}
}

// namedTests reports tests that a page promises and nobody wrote.
func namedTests(files map[string]string) (problems []string) {
	exists := map[string]bool{}
	for name, text := range files {
		if strings.HasSuffix(name, "_test.go") {
			for _, m := range testFunc.FindAllStringSubmatch(text, -1) {
				exists[m[1]] = true
			}
		}
	}
	for name, text := range files {
		// CONTRIBUTING.md shows how to name tests, not which there are.
		if !strings.HasSuffix(name, ".md") || name == ".github/CONTRIBUTING.md" {
			continue
		}
		for _, span := range codeSpan.FindAllString(fence.ReplaceAllString(text, ""), -1) {
			for _, test := range testName.FindAllString(span, -1) {
				if !exists[test] {
					problems = append(problems, name+" names "+test+", which does not exist")
				}
			}
		}
	}
	return problems
}

// brokenLinks reports relative links to no file, or to no heading of it.
func brokenLinks(files map[string]string) (problems []string) {
	folders := map[string]bool{".": true}
	for name := range files {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			folders[dir] = true
		}
	}
	for name, text := range files {
		if !strings.HasSuffix(name, ".md") {
			continue
		}
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			target := path.Join(path.Dir(name), file)
			if file == "" {
				target = name
			}
			page, isFile := files[target]
			if !isFile && !folders[target] {
				problems = append(problems, name+" links to "+m[1]+", which does not exist")
			} else if anchor != "" && !anchors(page)[anchor] {
				problems = append(problems, name+" links to "+m[1]+", which has no such heading")
			}
		}
	}
	return problems
}

// anchors are the headings of a page as GitHub names them in links.
func anchors(page string) map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		all[strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return all
}

// machinePaths reports paths that exist on one author's machine only.
func machinePaths(files map[string]string) (problems []string) {
	for name, text := range files {
		if !mayMention[name] && !strings.HasPrefix(text, "\x7fELF") {
			if m := machine.FindString(text); m != "" {
				problems = append(problems, name+" has a path of a machine: "+m)
			}
		}
	}
	return problems
}

func TestDocRulesCanFail(t *testing.T) {
	files := map[string]string{
		"a_test.go":    "func TestKept(t *testing.T) {}\nfunc TestKept2(t *testing.T) {}",
		"docs/good.md": "# A `b` c!\n`TestKept`, `TestKept/case`, `relock.TestKept2`, [x](../a_test.go), [x](../docs), [x](#a-b-c), [x](https://a.b/c)",
	}
	for name, rule := range map[string]func(map[string]string) []string{"names": namedTests, "links": brokenLinks, "paths": machinePaths} {
		if got := rule(files); len(got) > 0 {
			t.Errorf("%s: the good page is refused: %q", name, got)
		}
	}
	files["docs/bad.md"] = "`TestGone` [x](gone.md) [x](good.md#gone) [x](#gone) see /home/me/notes"
	if got := namedTests(files); len(got) != 1 {
		t.Errorf("missing tests: got %q, want one", got)
	}
	if got := brokenLinks(files); len(got) != 3 {
		t.Errorf("broken links: got %q, want three", got)
	}
	if got := machinePaths(files); len(got) != 1 {
		t.Errorf("paths of a machine: got %q, want one", got)
	}
}
