package house_test

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// tooling are folders of internal/ that no program of a user links.
var tooling = []string{"internal/jvm", "internal/redistest", "internal/rig", "internal/spawn", "internal/virtual"}

// production reports the library's own Go files: those of the root package and of internal/, without tests.
func production(file string) bool {
	dir := path.Dir(file)
	ours := dir == "." || strings.HasPrefix(dir, "internal/") && !strings.HasPrefix(dir, "internal/tools")
	return ours && path.Ext(file) == ".go" && !strings.HasSuffix(file, "_test.go") && !slices.Contains(tooling, dir)
}

func TestCodeGetsNoLonger(t *testing.T) {
	for what, n := range sizes(everyFile(t)) {
		report(t, held(ceilings, what, n, nil))
	}
}

var wordOfPage = regexp.MustCompile(`(?m)^\| ([^|]+) \| [^|]+ \| [^|]+ \|$`)

// sizes are how many lines the code has, and how many words its readers have to learn.
func sizes(files map[string]string) map[string]int {
	n := map[string]int{"lines of production Go": 0, "lines of Lua": 0, "lines of internal/transport": 0, "words in docs/words.md": 0}
	for name, text := range files {
		lines := strings.Count(text, "\n")
		if path.Dir(name) == "lua" && path.Ext(name) == ".lua" {
			n["lines of Lua"] += lines
		}
		if !production(name) {
			continue
		}
		n["lines of production Go"] += lines
		if path.Dir(name) == "internal/transport" {
			n["lines of internal/transport"] += lines
		}
	}
	page, _, _ := strings.Cut(files[wordsPage], "## Given up")
	for _, row := range wordOfPage.FindAllStringSubmatch(page, -1) {
		if word := row[1]; word != "word" && !strings.HasPrefix(word, "--") {
			n["words in docs/words.md"]++
		}
	}
	return n
}

func TestSizesCountWhatUsersLink(t *testing.T) {
	n := sizes(map[string]string{
		"a.go": "1\n2\n", "internal/transport/b.go": "3\n", "internal/transport/b_test.go": "4\n", "internal/rig/c.go": "5\n",
		"internal/tools/sbom/d.go": "6\n", "redisson/e.go": "7\n", "lua/f.lua": "8\n9\n", "redisson/lua/g.lua": "10\n",
		wordsPage: "| word | what it is | in the code |\n|---|---|---|\n| room | x | `room` |\n\n## Given up\n\n| pile | list | `list` |\n",
	})
	if n["lines of production Go"] != 3 || n["lines of Lua"] != 2 || n["lines of internal/transport"] != 1 || n["words in docs/words.md"] != 1 {
		t.Errorf("got %v", n)
	}
}
