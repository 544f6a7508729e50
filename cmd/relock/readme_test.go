//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLinesOfReadmeWork types what README.md has for the shell, line by line, in a shell.
func TestLinesOfReadmeWork(t *testing.T) {
	w := newWorld(t)
	dir := t.TempDir()
	if err := os.Symlink(self(t), filepath.Join(dir, "relock")); err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(read(t, "../../README.md"), "\n## In the shell\n")
	_, block, _ := strings.Cut(section, "```\n")
	block, _, _ = strings.Cut(block, "```\n")
	typed := 0
	for line := range strings.Lines(block) {
		line = strings.TrimSpace(line)
		if line == "go build ./cmd/relock" || line == "./relock serve" { // the first is done; the second has no end
			continue
		}
		typed++
		sh := exec.CommandContext(t.Context(), "sh", "-c", line)
		sh.Dir, sh.Env = dir, w.env(beRelock)
		out, err := sh.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
		// What echo is given to say is said.
		if _, said, echoes := strings.Cut(line, " echo '"); echoes && string(out) != strings.TrimSuffix(said, "'")+"\n" {
			t.Errorf("%s: prints %q", line, out)
		}
	}
	if typed < 5 {
		t.Errorf("%d lines were typed", typed)
	}
}
