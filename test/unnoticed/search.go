package main

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

//go:embed switches.go.txt
var switches []byte

// tooLong is what a test may take if it is to be run for changes.
const tooLong = time.Second

// A search tries the changes of one copy of the module.
type search struct {
	folders  []string      // whose code is changed
	packages []string      // whose tests are run, as patterns of go list
	seed     int64         // of the order of changes
	limit    time.Duration // for all changes
	most     time.Duration // for the tests of one change, as they took without it
	log      io.Writer

	dir     string // of the copy
	changes []change
	tests   []*test
}

// A test is one function of a compiled test.
type test struct {
	binary, folder, name string

	took  time.Duration
	seen  []byte // by change, whether the test passes through it
	kills int    // how many changes it has noticed; guarded by trial.mu
}

// A verdict is what became of a change.
type verdict string

const (
	noticed   verdict = "noticed"   // a test failed
	passed    verdict = "passed"    // all tests that pass through it passed
	unreached verdict = "unreached" // no test passes through it
	undecided verdict = "undecided" // some tests were left out, as they take too long
)

// A result is a change with its verdict.
type result struct {
	change
	verdict verdict
}

// run returns the verdicts of the changes that were tried in time.
func (s *search) run(ctx context.Context) (results []result, err error) {
	if s.dir, err = os.MkdirTemp("", "unnoticed"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	if err = s.copyModule(); err != nil {
		return nil, err
	}
	if err = s.instrument(ctx); err != nil {
		return nil, err
	}
	if err = s.build(ctx); err != nil {
		return nil, err
	}
	s.cover(ctx)
	return s.try(ctx), ctx.Err()
}

// copyModule copies the module in the working directory.
func (s *search) copyModule() error {
	return filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "out"):
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(s.dir, name), 0o700)
		case !d.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(s.dir, name), text, 0o600)
	})
}

// instrument puts switches into the code of the folders.
func (s *search) instrument(ctx context.Context) error {
	module, err := s.goCommand(ctx, "list", "-m")
	if err != nil {
		return err
	}
	in := &instrument{switches: strings.TrimSpace(module) + "/internal/switches"}
	for _, folder := range s.folders {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			return err
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			src, err := os.ReadFile(name)
			if err == nil {
				src, err = in.file(filepath.ToSlash(name), src)
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(s.dir, name), src, 0o600)
			}
			if err != nil {
				return err
			}
		}
	}
	s.changes = in.changes
	to := filepath.Join(s.dir, "internal", "switches")
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, "switches.go"), switches, 0o600)
}

// build compiles the tests, and lists them.
func (s *search) build(ctx context.Context) error {
	out, err := s.goCommand(ctx, append([]string{"list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}"}, s.packages...)...)
	if err != nil {
		return err
	}
	for i, folder := range strings.Fields(out) {
		binary := filepath.Join(s.dir, fmt.Sprintf("%d.test", i))
		if _, err := s.goCommand(ctx, "test", "-c", "-vet=off", "-o", binary, folder); err != nil {
			return err
		}
		list := exec.CommandContext(ctx, binary, "-test.list", "^Test")
		list.Dir = folder
		names, err := list.Output()
		if err != nil {
			return fmt.Errorf("%s: %w", folder, err)
		}
		for name := range strings.FieldsSeq(string(names)) {
			s.tests = append(s.tests, &test{binary: binary, folder: folder, name: name})
		}
	}
	return nil
}

// goCommand runs the go command in the copy.
func (s *search) goCommand(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = s.dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", args[0], err, stderr.Bytes())
	}
	return string(out), nil
}

// workers is how many tests run at a time: most wait more than they work.
func workers() int { return 2 * runtime.GOMAXPROCS(0) }

// cover runs each test once, and keeps those that pass soon with what they pass through.
func (s *search) cover(ctx context.Context) {
	todo := make(chan *test)
	var all sync.WaitGroup
	for i := range workers() {
		all.Go(func() {
			file := filepath.Join(s.dir, fmt.Sprintf("seen%d", i))
			for t := range todo {
				if err := os.WriteFile(file, make([]byte, len(s.changes)), 0o600); err != nil {
					continue
				}
				began := time.Now()
				ok := runTests(ctx, t.binary, t.folder, []string{t.name}, time.Minute, "SWITCHES_SEEN="+file)
				seen, err := os.ReadFile(file)
				if t.took = time.Since(began); ok && err == nil && bytes.IndexByte(seen, 1) >= 0 && t.took < tooLong {
					t.seen = seen
				}
			}
		})
	}
	for _, t := range s.tests {
		todo <- t
	}
	close(todo)
	all.Wait()
	before := len(s.tests)
	s.tests = slices.DeleteFunc(s.tests, func(t *test) bool { return t.seen == nil })
	_, _ = fmt.Fprintf(s.log, "%d changes; %d of %d tests reach one, and take less than %v\n", len(s.changes), len(s.tests), before, tooLong)
}

// runTests runs tests of one binary until the first fails, and reports whether all passed. What they have started ends
// with them.
func runTests(ctx context.Context, binary, folder string, names []string, limit time.Duration, env string) bool {
	ctx, cancel := context.WithTimeout(ctx, limit+5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "-test.run", "^("+strings.Join(names, "|")+")$", "-test.failfast", "-test.timeout", limit.String())
	cmd.Dir, cmd.Env = folder, append(os.Environ(), env)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err := cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	return err == nil
}

// A trial is the part of a search that its workers share.
type trial struct {
	*search
	mu      sync.Mutex // guards the kills of tests, and results
	results []result
}

// try switches changes on, in the order of the seed, until the time is over.
func (s *search) try(ctx context.Context) []result {
	by := time.Now().Add(s.limit)
	todo := make(chan change)
	t := &trial{search: s}
	var all sync.WaitGroup
	for range workers() {
		all.Go(func() {
			for c := range todo {
				v := t.judge(ctx, c)
				t.mu.Lock()
				t.results = append(t.results, result{c, v})
				t.mu.Unlock()
			}
		})
	}
	order := rand.New(rand.NewSource(s.seed)).Perm(len(s.changes)) //nolint:gosec // the same for each seed
	for i, n := range order {
		if time.Now().After(by) || ctx.Err() != nil {
			break
		}
		todo <- s.changes[n]
		if i%100 == 99 {
			_, _ = fmt.Fprintf(s.log, "%d of %d\n", i+1, len(order))
		}
	}
	close(todo)
	all.Wait()
	return t.results
}

// judge switches a change on and returns what the tests say.
func (t *trial) judge(ctx context.Context, c change) verdict {
	through := t.through(c)
	if len(through) == 0 {
		return unreached
	}
	var spent time.Duration
	for size := 6; len(through) > 0; size = 50 {
		if spent > t.most {
			return undecided
		}
		next := through[:min(size, len(through))]
		through = through[len(next):]
		for _, group := range byBinary(next) {
			failed, took := t.group(ctx, c, group)
			if failed {
				return noticed
			}
			spent += took / 2 // alone they took longer than they do one after the other
		}
	}
	return passed
}

// through returns the tests that pass through a change. First come those that have noticed most changes for the time
// that they take.
func (t *trial) through(c change) (all []*test) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, x := range t.tests {
		if x.seen[c.N] == 1 {
			all = append(all, x)
		}
	}
	slices.SortStableFunc(all, func(a, b *test) int {
		worth := func(x *test) float64 { return float64(x.kills+1) / (x.took + 50*time.Millisecond).Seconds() }
		return cmp.Compare(worth(b), worth(a))
	})
	return all
}

// group runs tests of one binary with the change, and returns how long they took without it.
func (t *trial) group(ctx context.Context, c change, group []*test) (failed bool, took time.Duration) {
	var names []string
	for _, x := range group {
		took += x.took
		names = append(names, x.name)
	}
	failed = !runTests(ctx, group[0].binary, group[0].folder, names, 4*took+10*time.Second, fmt.Sprint("SWITCH_ON=", c.N))
	if failed {
		t.mu.Lock()
		defer t.mu.Unlock()
		for _, x := range group {
			x.kills++
		}
	}
	return failed, took
}

// byBinary splits tests by the binary that they are in.
func byBinary(tests []*test) [][]*test {
	var groups [][]*test
	for _, x := range tests {
		i := slices.IndexFunc(groups, func(g []*test) bool { return g[0].binary == x.binary })
		if i < 0 {
			groups = append(groups, nil)
			i = len(groups) - 1
		}
		groups[i] = append(groups[i], x)
	}
	return groups
}
