package host

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Java returns the folder in which a program for Redisson was built if a JVM can run it, else
// "", and says what was found. The folder has the name of Redisson's version.
func Java(ctx context.Context, dir string) (string, Fact) {
	fact := Fact{What: "Redisson"}
	out, err := exec.CommandContext(ctx, "java", "-version").CombinedOutput()
	if err != nil {
		fact.Value = "left out: there is no java on the PATH"
		return "", fact
	}
	if _, err := os.Stat(filepath.Join(dir, "classes", "interop", "Contest.class")); err != nil {
		fact.Value = "left out: its program is not built; `make bench` builds it where Maven is"
		return "", fact
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	fact.Value = filepath.Base(dir) + ", " + first
	return dir, fact
}
