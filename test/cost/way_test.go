package cost_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// wayEnv makes TestWayOfALockAndUnlock say where they go: `make way`.
const wayEnv = "RELOCK_WAY"

// passed are lines of go tool covdata about functions of ours that have run.
var passed = regexp.MustCompile(`(?m)^github.com/relock-go/relock/(\S+\.go):\d+:\s+(\S+)\s+[1-9]\S*%$`)

// TestWayOfALockAndUnlock lists the functions through which they go where nobody else wants
// the lock, file by file, for who wants to read them.
func TestWayOfALockAndUnlock(t *testing.T) {
	if os.Getenv(wayEnv) == "" {
		t.Skip("left out: `make way` lists the functions of a lock and unlock")
	}
	dir := t.TempDir()
	t.Setenv("GOCOVERDIR", dir)
	program := filepath.Join(dir, "way")
	run := func(name string, args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		return string(out)
	}
	run("go", "build", "-cover", "-covermode=atomic", "-coverpkg=github.com/relock-go/relock/...", "-o", program, "./way")
	counted := filepath.Join(dir, "counted")
	rig.Must(t, os.Mkdir(counted, 0o700))
	run(program, redistest.Real(t).Addr(), counted)
	way, functions := map[string][]string{}, 0
	for _, m := range passed.FindAllStringSubmatch(run("go", "tool", "covdata", "func", "-i="+counted), -1) {
		if file := m[1]; !strings.HasPrefix(file, "test/") {
			way[file] = append(way[file], m[2])
			functions++
		}
	}
	for _, file := range slices.Sorted(maps.Keys(way)) {
		t.Logf("%s: %s", file, strings.Join(way[file], " "))
	}
	if functions == 0 {
		t.Error("no function was counted")
	}
	t.Logf("%d functions in %d files", functions, len(way))
}
