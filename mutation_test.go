package relock_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mutateEnv, set to 1, makes TestEveryRuleIsNeeded take the rules out: `make mutate`.
const mutateEnv = "RELOCK_MUTATE"

// A mutation takes one rule of the protocol out of the code.
type mutation struct {
	name     string // of the rule that is gone
	file     string
	old, new string   // in every place of the file where old stands
	tests    []string // each fails without the rule
}

var mutations = slices.Concat(
	safetyRules, livenessRules, rwlockRules,
	outageRules,
	holdRules,
	wireRules,
	handleRules,
)

// apply returns the mutated text, or an error if there is nothing to mutate.
func (m mutation) apply(text string) (string, error) {
	if !strings.Contains(text, m.old) {
		return "", errors.New(m.file + " has no such text any more: " + m.old)
	}
	return strings.ReplaceAll(text, m.old, m.new), nil
}

// TestMutationsNameWhatExists keeps the table from rotting between two runs of
// `make mutate`.
func TestMutationsNameWhatExists(t *testing.T) {
	tests := everyTest(t)
	for _, m := range mutations {
		text, err := os.ReadFile(m.file)
		if err == nil {
			_, err = m.apply(string(text))
		}
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
		for _, test := range m.tests {
			if !slices.Contains(tests, test) {
				t.Errorf("%s: no test %s", m.name, test)
			}
		}
	}
}

// scheduleName is that of a schedule, by the number of its fault.
var scheduleName = regexp.MustCompile(`^TestF\d\d`)

// TestEveryScheduleHasAMutation: a schedule that no mutation fails shows nothing.
func TestEveryScheduleHasAMutation(t *testing.T) {
	for _, test := range everyTest(t) {
		named := func(m mutation) bool { return slices.Contains(m.tests, test) }
		if scheduleName.MatchString(test) && !slices.ContainsFunc(mutations, named) {
			t.Errorf("%s: no mutation is to fail it", test)
		}
	}
}

// everyTest lists the tests there are: schedules and others.
func everyTest(t *testing.T) (tests []string) {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if name, ok := strings.CutPrefix(line, "func Test"); ok {
				name, _, _ = strings.Cut(name, "(")
				tests = append(tests, "Test"+name)
			}
		}
	}
	return tests
}

// TestEveryRuleIsNeeded takes out one rule after the other, in a copy of the
// module, and demands that each test which is there for it fails.
func TestEveryRuleIsNeeded(t *testing.T) {
	if os.Getenv(mutateEnv) != "1" {
		t.Skip("left out: takes minutes; `make mutate` runs it")
	}
	dir := t.TempDir()
	copyModule(t, dir)
	var named []string
	for _, m := range mutations {
		named = append(named, m.tests...)
	}
	if out, err := runTests(t, dir, build(t, dir), named...); err != nil {
		t.Fatalf("the tests fail without any mutation:\n%s", out)
	}
	for _, m := range mutations {
		t.Run(strings.ReplaceAll(m.name, " ", "_"), func(t *testing.T) { m.run(t, dir) })
	}
}

func (m mutation) run(t *testing.T, dir string) {
	file := filepath.Join(dir, m.file)
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	after, err := m.apply(string(before))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(after), 0o600); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := os.WriteFile(file, before, 0o600); err != nil {
			t.Fatal(err)
		}
	}()
	bin := build(t, dir)
	// One at a time: what a test leaves behind when it fails may stop the others.
	for _, test := range m.tests {
		if out, err := runTests(t, dir, bin, test); err == nil {
			t.Errorf("%s passes without the rule", test)
		} else if !strings.Contains(out, "--- FAIL: "+test) && !strings.Contains(out, "panic: ") {
			t.Errorf("%s did not fail by itself: %v\n%s", test, err, out)
		}
	}
}

// build compiles the tests of the copy in dir.
func build(t *testing.T, dir string) (bin string) {
	t.Helper()
	bin = filepath.Join(dir, "mutant.test")
	// -trimpath: what is not mutated comes from the build cache, wherever the copy is.
	cmd := exec.CommandContext(t.Context(), "go", "test", "-c", "-trimpath", "-vet=off", "-o", bin, ".")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go test -c: %v\n%s", err, out)
	}
	return bin
}

func runTests(t *testing.T, dir, bin string, tests ...string) (out string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), bin, "-test.timeout=2m", "-test.run=^("+strings.Join(tests, "|")+")$")
	cmd.Dir = dir
	b, err := cmd.CombinedOutput()
	return string(b), err
}

// copyModule copies what the tests of the root package are built from.
func copyModule(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if strings.HasPrefix(name, ".") && name != "." {
				return fs.SkipDir
			}
			return os.MkdirAll(filepath.Join(dir, name), 0o700)
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, name), b, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}
