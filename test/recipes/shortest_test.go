package recipes_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
)

// TestTheShortestProgramRuns compiles the program that README.md shows, with the address of a server of this test.
func TestTheShortestProgramRuns(t *testing.T) {
	text, err := os.ReadFile("shortest/main.go")
	if err != nil {
		t.Fatal(err)
	}
	srv := miniredis.RunT(t)
	dir := t.TempDir()
	source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "shortest")
	there := strings.Replace(string(text), "localhost:6379", srv.Addr(), 1)
	if err = os.WriteFile(source, []byte(there), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, fails := exec.CommandContext(t.Context(), "go", "build", "-o", program, source).CombinedOutput(); fails != nil {
		t.Fatalf("%v\n%s", fails, out)
	}
	run := func() string {
		out, fails := exec.CommandContext(t.Context(), program).CombinedOutput()
		if fails != nil {
			t.Errorf("%v\n%s", fails, out)
		}
		return string(out)
	}
	if out := run(); !strings.Contains(out, "no other process works on order 4711") || !strings.Contains(out, "true <nil>") {
		t.Errorf("with a server: %s", out)
	}
	srv.Close()
	if out := run(); !strings.Contains(out, "false relock: lock \"orders/4711\"") || !strings.Contains(out, "connection refused") {
		t.Errorf("without a server: %s", out)
	}
}
