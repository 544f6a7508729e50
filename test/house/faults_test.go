package house_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// faultsPage is where the numbers in the names of schedules are explained.
const faultsPage = "docs/faults.md"

var (
	faultOfTest = regexp.MustCompile(`func TestF(\d\d[a-z]?)[A-Z]`)
	faultRow    = regexp.MustCompile(`(?m)^\| F(\d\d[a-z]?) \|.*$`)
)

func TestDocumentedFaultsAreStaged(t *testing.T) { report(t, unstaged(everyFile(t))) }

// unstaged reports schedules whose fault is explained nowhere, and faults that no
// schedule and no named test stages.
func unstaged(files map[string]string) (problems []string) {
	staged := map[string]bool{}
	for name, text := range files {
		if strings.HasSuffix(name, "_test.go") {
			for _, m := range faultOfTest.FindAllStringSubmatch(text, -1) {
				staged[m[1]] = true
			}
		}
	}
	explained := map[string]bool{}
	for _, row := range faultRow.FindAllStringSubmatch(files[faultsPage], -1) {
		explained[row[1]] = true
		if !staged[row[1]] && !testName.MatchString(row[0]) && !strings.Contains(row[0], "Planned") {
			problems = append(problems, faultsPage+" has F"+row[1]+", which no test stages")
		}
	}
	for fault := range staged {
		if !explained[fault] {
			problems = append(problems, faultsPage+" does not explain F"+fault+", which a test stages")
		}
	}
	slices.Sort(problems)
	return problems
}

func TestDocumentedFaultsRuleCanFail(t *testing.T) {
	files := map[string]string{
		"a_test.go": "func TestF01Kept(t *testing.T) {}\nfunc TestF03bKept(t *testing.T) {}",
		faultsPage:  "| F01 | S | x |\n| F03b | S | x |\n| F07 | S | `TestKept` |\n| F19 | S | Planned |",
	}
	if got := unstaged(files); len(got) > 0 {
		t.Errorf("the good page is refused: %q", got)
	}
	files["b_test.go"] = "func TestF02Gone(t *testing.T) {}"
	files[faultsPage] += "\n| F15 | L | x |"
	if got := unstaged(files); len(got) != 2 {
		t.Errorf("got %q, want one unexplained and one unstaged", got)
	}
}
