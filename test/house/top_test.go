package house_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// mostEntries is how many files and folders the top of the repository may have: a
// stranger reads their names before anything else. It may fall. Two of them, AGENTS.md and llms.txt, are where
// programs look for them.
const mostEntries = 51

// family are packages beside the root package, for who has a use for them: a reader of
// relock need not look into them.
var family = map[string]bool{"contrib": true, "fence": true, "otelrelock": true, "redisson": true, "relocktest": true, "relockweb": true}

func TestTopFolderIsRead(t *testing.T) { report(t, overfull(everyFile(t), mostEntries)) }

// overfull reports a top folder of more entries than a reader takes in.
func overfull(files map[string]string, most int) (problems []string) {
	entries := map[string]bool{}
	for name := range files {
		top, _, _ := strings.Cut(name, "/")
		entries[top] = true
	}
	for _, theirs := range []string{"go.work", "go.work.sum", "out", "relock", "dump.rdb", "appendonlydir"} { // a developer's, which git ignores; relock is the command, built
		delete(entries, theirs)
	}
	for name := range family {
		delete(entries, name)
	}
	if len(entries) > most {
		problems = append(problems, fmt.Sprintf("the top folder has %d entries, and may have %d: %q", len(entries), most, slices.Sorted(maps.Keys(entries))))
	}
	return problems
}

func TestTopFolderRuleCanFail(t *testing.T) {
	files := map[string]string{"a.go": "", "b.go": "", "lua/a.lua": "", "lua/b.lua": "", "go.work": "", "relock": "", "redisson/a.go": ""}
	if got := overfull(files, 3); len(got) > 0 {
		t.Errorf("a.go, b.go and lua are refused: %q", got)
	}
	files["c.go"] = ""
	if got := overfull(files, 3); len(got) != 1 {
		t.Errorf("got %q, want one entry too many", got)
	}
}
