package mutation_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/relock-go/relock/test/mutation"
)

// mutateEnv, set to 1, makes TestEveryRuleIsNeeded take the rules out: `make mutate`.
const mutateEnv = "RELOCK_MUTATE"

// TestMutationsNameWhatExists keeps the table from rotting between two runs of
// `make mutate`.
func TestMutationsNameWhatExists(t *testing.T) {
	tests, code := everyTest(t), mutation.NewCode(os.DirFS("."))
	for _, m := range slices.Concat(mutation.All, mutation.Interop, mutation.Further) {
		if _, err := m.Without(code); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
		for _, test := range m.Tests {
			if folderOf(tests, test) == "" {
				t.Errorf("%s: no test %s", m.Name, test)
			}
		}
	}
}

// scheduleName is that of a schedule, by the number of its fault.
var scheduleName = regexp.MustCompile(`^TestF\d\d`)

// TestEveryScheduleHasAMutation: a schedule that no mutation fails shows nothing.
func TestEveryScheduleHasAMutation(t *testing.T) {
	for test := range everyTest(t) {
		named := func(m mutation.Rule) bool { return slices.Contains(m.Tests, test) }
		if scheduleName.MatchString(test) && !slices.ContainsFunc(mutation.All, named) {
			t.Errorf("%s: no mutation is to fail it", test)
		}
	}
}

// everyTest is the folder of each test: those of the root package, of the other packages and modules, of the mechanisms, and of the suites.
func everyTest(t *testing.T) (folders map[string]string) {
	t.Helper()
	folders = map[string]string{}
	for _, pattern := range []string{"*_test.go", "redisson/*_test.go", "fence/*_test.go", "relocktest/*_test.go", "relockweb/*_test.go", "cmd/relock/*_test.go", "otelrelock/*_test.go", "contrib/*/*_test.go", "redisson/interop/*_test.go", "internal/*/*_test.go", "test/*/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				name, is := strings.CutPrefix(line, "func Test")
				name, _, _ = strings.Cut("Test"+name, "(")
				if other := folders[name]; is && other != "" && name != "TestMain" {
					t.Errorf("%s is in two folders: %s and %s", name, other, filepath.Dir(file))
				} else if is {
					folders[name] = filepath.Dir(file)
				}
			}
		}
	}
	return folders
}

// folderOf is where a test is, or a part of one: TestName/part.
func folderOf(folders map[string]string, test string) string {
	name, _, _ := strings.Cut(test, "/")
	return folders[name]
}

// TestEveryRuleIsNeeded takes out one rule after the other, in a copy of the
// module, and demands that each test which is there for it fails.
func TestEveryRuleIsNeeded(t *testing.T) {
	if os.Getenv(mutateEnv) != "1" {
		t.Skip("left out: takes minutes; `make mutate` runs it")
	}
	needed(t, mutation.All, runtime.GOMAXPROCS(0)) // their tests wait more than they work
}

// TestEveryRuleIsNeededByJava does the same beside a real Redisson, which has to be built.
func TestEveryRuleIsNeededByJava(t *testing.T) {
	if os.Getenv(mutateEnv) != "1" || os.Getenv("RELOCK_INTEROP") == "" {
		t.Skip("left out: takes minutes, and a JVM; `make mutate INTEROP=4.7.0` runs it")
	}
	needed(t, mutation.Interop, 1) // a JVM needs the machine for itself
}

// needed takes out as many rules at a time as there are to be copies. Most are taken out by a switch, in one build.
func needed(t *testing.T, rules []mutation.Rule, copies int) {
	t.Helper()
	all := newSwitched(t, rules)
	free := make(chan *mutated, copies)
	for range copies {
		c := &mutated{dir: t.TempDir(), folders: everyTest(t), whole: map[string]string{}, passes: map[string]bool{}}
		copyModule(t, c.dir)
		c.code = mutation.NewCode(os.DirFS(c.dir))
		free <- c
	}
	for n, m := range rules {
		t.Run(strings.ReplaceAll(m.Name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			if all.without(t, n, m) {
				return
			}
			t.Log("taken out in a build of its own")
			c := <-free
			defer func() { free <- c }()
			c.without(t, m)
		})
	}
}

// without takes a rule out, and puts it back.
func (c *mutated) without(t *testing.T, m mutation.Rule) {
	c.with(t, m)
	changed, err := m.Without(c.code)
	if err != nil {
		t.Fatal(err)
	}
	for name, after := range changed {
		defer c.put(t, name, after)()
	}
	binaries := map[string]string{} // by folder
	// One at a time: what a test leaves behind when it fails may stop the others.
	for _, test := range m.Tests {
		folder := folderOf(c.folders, test)
		if binaries[folder] == "" {
			binaries[folder] = c.build(t, folder, "mutated")
		}
		if out, err := c.run(t, binaries[folder], folder, test); err == nil {
			t.Errorf("%s passes without the rule", test)
		} else if !failedItself(out, test) {
			t.Errorf("%s did not fail by itself: %v\n%s", test, err, out)
		}
	}
}

// failedItself tells a test that failed from one that could not be run.
func failedItself(out, test string) bool {
	return strings.Contains(out, "--- FAIL: "+test) || strings.Contains(out, "panic: ") || strings.Contains(out, "fatal error: ")
}

// put writes a file of the copy. It returns what puts the former text back.
func (c *mutated) put(t *testing.T, name, text string) (back func()) {
	t.Helper()
	file := filepath.Join(c.dir, name)
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text []byte) {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write([]byte(text))
	return func() { write(before) }
}

// with demands that the tests of a rule pass while it is there. Each is run once, however
// many rules name it.
func (c *mutated) with(t *testing.T, m mutation.Rule) {
	for _, test := range m.Tests {
		folder := folderOf(c.folders, test)
		if c.whole[folder] == "" {
			c.whole[folder] = c.build(t, folder, "whole")
		}
		if c.passes[test] {
			continue
		}
		if out, err := c.run(t, c.whole[folder], folder, test); err != nil {
			t.Fatalf("%s fails without any mutation:\n%s", test, out)
		}
		c.passes[test] = true
	}
}

// mutated is a copy of the module, in which rules are taken out.
type mutated struct {
	dir     string
	code    *mutation.Code    // as it was copied: each rule is put back
	folders map[string]string // by test
	whole   map[string]string // tests that were built with all rules, by folder
	passes  map[string]bool   // tests that were seen to pass with all rules
}

// measured are the folders whose tests tell what compiled code allocates, and how long it takes.
var measured = []string{"test/cost", "internal/clock", "internal/renewal"}

// build compiles the tests of one folder, as the copy is now.
func (c *mutated) build(t *testing.T, folder, as string) (bin string) {
	t.Helper()
	bin = filepath.Join(c.dir, as+"+"+strings.NewReplacer("/", "+", ".", "root").Replace(folder)+".test")
	// -trimpath: what is not mutated comes from the build cache, wherever the copy is.
	// Without debug information it is linked in half the time, and without optimizations compiled in half the time.
	args := []string{"test", "-c", "-trimpath", "-vet=off", "-ldflags=-w", "-o", bin}
	if !slices.Contains(measured, folder) {
		args = append(args, "-gcflags=github.com/relock-go/relock/...=-N -l")
	}
	in, what := c.dir, "./"+folder
	if own := filepath.Join(c.dir, folder); folder != "." && exists(filepath.Join(own, "go.mod")) { // a module of its own
		in, what = own, "."
	}
	cmd := exec.CommandContext(t.Context(), "go", append(args, what)...)
	cmd.Dir = in
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go test -c: %v\n%s", err, out)
	}
	return bin
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// run runs one test for two minutes at most.
func (c *mutated) run(t *testing.T, bin, folder, test string) (out string, err error) {
	t.Helper()
	return c.runWithin(t, 2*time.Minute, bin, folder, test)
}

func (c *mutated) runWithin(t *testing.T, limit time.Duration, bin, folder, test string, env ...string) (out string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), bin, "-test.timeout="+limit.String(), "-test.run=^"+test+"$")
	cmd.Dir = filepath.Join(c.dir, folder)
	cmd.Env = append(os.Environ(), env...)
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
