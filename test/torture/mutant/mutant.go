// Package mutant breaks the locks on purpose, one rule after the other, and
// demands that the rig sees it: a checker that cannot fail shows nothing.
package mutant

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/relock-go/relock/test/torture/check"
	"github.com/relock-go/relock/test/torture/rig"
	"github.com/relock-go/relock/test/torture/server"
)

// An Edit replaces a text of a file, wherever it stands there.
type Edit struct{ File, Old, New string }

// A Mutant is a relock without one of its rules.
type Mutant struct {
	Name  string // what it does wrong
	Edits []Edit
	Loads map[string]int // the workloads that show it
	Kinds []string       // the faults that show it
	Want  []check.Name   // the violations of which one must be found, the most telling one first

	Form    string // of the deployment that shows it; "": one server
	Inspect bool   // it shows when the workers have gone
}

// Within is the time in which a mutant must be caught.
const Within = time.Minute

// A Catch says how a mutant was caught.
type Catch struct {
	Mutant string
	After  time.Duration
	By     check.Violation
}

// Overlay writes the edited files under dir, and what `go build -overlay` has to
// know of them. A text that is not there any more is an error.
func (m Mutant) Overlay(root, dir string) (path string, err error) {
	texts := map[string]string{}
	for _, e := range m.Edits {
		text, ok := texts[e.File]
		if !ok {
			b, err := os.ReadFile(filepath.Join(root, e.File))
			if err != nil {
				return "", err
			}
			text = string(b)
		}
		if !strings.Contains(text, e.Old) {
			return "", fmt.Errorf("mutant %q: %s has no such text any more: %s", m.Name, e.File, e.Old)
		}
		texts[e.File] = strings.ReplaceAll(text, e.Old, e.New)
	}
	replace := map[string]string{}
	for file, text := range texts {
		to := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(root, file)] = to
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, b, 0o600)
}

// Root is the folder of relock, by that of this module.
func Root(module string) string { return filepath.Join(module, "..", "..") }

// Build makes the program of the workers. module is the folder of this module.
func (m Mutant) Build(ctx context.Context, module, dir string) (bin string, err error) {
	overlay, err := m.Overlay(Root(module), dir)
	if err != nil {
		return "", err
	}
	bin = filepath.Join(dir, "mutant")
	cmd := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "-o", bin, ".")
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("mutant %q: go build: %w\n%s", m.Name, err, out)
	}
	return bin, nil
}

// slice is how long a mutant runs before its history is judged.
const slice = 7 * time.Second

// Catch runs the mutant until the checker finds it out, for at most Within.
func (m Mutant) Catch(ctx context.Context, bin, dir string, seed uint64, log io.Writer) (Catch, error) {
	begin := time.Now()
	var seen []check.Violation
	if m.Form == "" {
		m.Form = server.Standalone
	}
	for n := 0; time.Since(begin) < Within; n++ {
		o := rig.Options{
			For: slice, Round: slice, Seed: seed + uint64(n), Dir: filepath.Join(dir, fmt.Sprint(n)), Forms: []string{m.Form},
			Actors: m.Loads, Kinds: m.Kinds, Calm: len(m.Kinds) == 0, Bin: bin, Log: log, Hasty: !m.Inspect,
		}
		if _, err := rig.Run(ctx, o); err != nil {
			return Catch{}, fmt.Errorf("mutant %q: %w", m.Name, err)
		}
		report, err := check.Run(o.Dir, check.Options{Minimums: &check.Minimums{}, Cutouts: -1})
		if err != nil {
			return Catch{}, fmt.Errorf("mutant %q: %w", m.Name, err)
		}
		after := time.Since(begin)
		for _, name := range m.Want {
			i := slices.IndexFunc(report.Violations, func(v check.Violation) bool { return v.Name == name })
			if i >= 0 && after < Within {
				return Catch{m.Name, after, report.Violations[i]}, nil
			}
		}
		seen = append(seen, report.Violations...)
	}
	return Catch{}, fmt.Errorf("mutant %q was not caught in %v; it shows %d other violations", m.Name, Within, len(seen))
}
