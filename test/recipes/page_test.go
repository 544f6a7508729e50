package recipes_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	shownCode = regexp.MustCompile("(?ms)^```go\n(.*?)^```")
	shownDiff = regexp.MustCompile("(?ms)^```diff\n(.*?)^```")
)

// TestPageShowsTheCodeThatIsTested compares docs/recipes.md with the files that are compiled. Of a diff, the Go lines
// before and after must each stand in one of the files, in that order. Java and gocron-redis-lock are not compiled.
func TestPageShowsTheCodeThatIsTested(t *testing.T) {
	page, err := os.ReadFile("../../docs/recipes.md")
	if err != nil {
		t.Fatal(err)
	}
	var sources []string
	for _, pattern := range []string{"*_test.go", "../../relocktest/*_test.go", "../../contrib/*/*_test.go"} {
		names, fails := filepath.Glob(pattern)
		if fails != nil {
			t.Fatal(fails)
		}
		for _, name := range names {
			text, fails := os.ReadFile(name)
			if fails != nil {
				t.Fatal(fails)
			}
			sources = append(sources, string(text))
		}
	}
	shown := shownCode.FindAllStringSubmatch(string(page), -1)
	for _, code := range shown {
		if !slices.ContainsFunc(sources, func(source string) bool { return strings.Contains(source, code[1]) }) {
			t.Errorf("in no file that is compiled:\n%s", code[1])
		}
	}
	diffs := shownDiff.FindAllStringSubmatch(string(page), -1)
	for _, diff := range diffs {
		for sign, half := range map[string]string{"-": side(diff[1], '-'), "+": side(diff[1], '+')} {
			if strings.Contains(half, "TimeUnit.") || strings.Contains(half, "NewRedisLocker(") {
				continue
			}
			if !slices.ContainsFunc(sources, func(source string) bool { return inOrder(half, source) }) {
				t.Errorf("the lines with %s are in no file that is compiled:\n%s", sign, half)
			}
		}
	}
	if len(shown) < 10 || len(diffs) < 3 {
		t.Errorf("the page shows %d pieces of code and %d diffs", len(shown), len(diffs))
	}
}

// side is what a diff has before, or after.
func side(diff string, sign byte) string {
	var lines []string
	for line := range strings.Lines(diff) {
		if line[0] == sign || line[0] == ' ' {
			lines = append(lines, line[1:])
		}
	}
	return strings.Join(lines, "")
}

// inOrder says that a text has each line, after the ones before it.
func inOrder(lines, text string) bool {
	for line := range strings.Lines(lines) {
		line = strings.TrimSpace(line)
		at := strings.Index(text, line)
		if at < 0 {
			return false
		}
		text = text[at+len(line):]
	}
	return true
}
