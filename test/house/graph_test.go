package house_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/relock-go/relock/internal/rig"
)

// TestUsersOfTheLibraryLinkNoServer: what is for tests stays in tests, relocktest and all
// that it brings as well.
func TestUsersOfTheLibraryLinkNoServer(t *testing.T) {
	linked := linkedBy(t, ".")
	for _, kept := range []string{miniredis, goleak, module + "/relocktest", module + "/internal/redistest", "testing", "os/exec"} {
		if slices.Contains(linked, kept) {
			t.Errorf("whoever imports the library links %s", kept)
		}
	}
	if tests := linkedBy(t, "./relocktest"); !slices.Contains(tests, miniredis) {
		t.Error("relocktest links no server: this test does not see what it looks for")
	}
}

// linkedBy is every package that a program links with the given one.
func linkedBy(t *testing.T, pkg string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", pkg).Output()
	rig.Must(t, err)
	return strings.Fields(string(out))
}
