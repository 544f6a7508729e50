package recipes_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const page = "../../docs/recipes.md"

var block = regexp.MustCompile("(?ms)^```(?:go|sql)\n(.*?)\n```$")

// What compiles and runs cannot rot: the page shows pieces of the tests' files.
func TestPageShowsCodeThatIsTested(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	tested := ""
	for _, file := range files {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tested += string(code)
	}
	blocks := block.FindAllStringSubmatch(string(text), -1)
	if len(blocks) == 0 {
		t.Error("the page shows no code")
	}
	for _, b := range blocks {
		if !strings.Contains(tested, b[1]) {
			t.Errorf("no test has this:\n%s", b[1])
		}
	}
}
