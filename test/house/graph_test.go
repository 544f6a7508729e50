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

// TestTestsOfWhatUsersLinkNeedNoOtherModule: go mod tidy puts into a user's go.sum what the
// tests need of each package that the user links, those in internal/ as well.
func TestTestsOfWhatUsersLinkNeedNoOtherModule(t *testing.T) {
	library := modulesOf(t, ".")
	for _, pkg := range linkedBy(t, ".") {
		if pkg != module && !strings.HasPrefix(pkg, module+"/") {
			continue
		}
		for _, needed := range modulesOf(t, "-test", pkg) {
			if !slices.Contains(library, needed) {
				t.Errorf("a test of %s needs %s: move it to a package in test/, or what it needs into a process of its own", pkg, needed)
			}
		}
	}
	if tests := modulesOf(t, "-test", "./test/contract"); !slices.Contains(tests, goleak) {
		t.Error("the contract's tests need no goleak: this test does not see what it looks for")
	}
}

// modulesOf are the modules of packages and of what they import.
func modulesOf(t *testing.T, args ...string) []string {
	t.Helper()
	args = append([]string{"list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}"}, args...)
	out, err := exec.CommandContext(t.Context(), "go", args...).Output()
	rig.Must(t, err)
	return slices.Compact(slices.Sorted(slices.Values(strings.Fields(string(out)))))
}

// linkedBy is every package that a program links with the given one.
func linkedBy(t *testing.T, pkg string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", pkg).Output()
	rig.Must(t, err)
	return strings.Fields(string(out))
}
