package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/test/torture/check"
	"github.com/relock-go/relock/test/torture/mutant"
	"github.com/relock-go/relock/test/torture/rig"
	"github.com/relock-go/relock/test/torture/server"
	"github.com/relock-go/relock/test/torture/worker"
)

// allEnv, set to 1, tries every mutant, as `make mutants` does.
const allEnv = "RELOCK_TORTURE_MUTANTS"

func TestMain(m *testing.M) {
	redis.SetLogger(silent{})
	os.Exit(m.Run())
}

// need skips where the programs are missing that the rig starts, or fails where
// that is not allowed.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			if os.Getenv("RELOCK_TEST_REQUIRE") == "1" {
				t.Fatalf("%s is not installed: run `make deps`", p)
			}
			t.Skipf("left out: this test needs %s", p)
		}
	}
}

// here is this module's directory.
func here(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// few is every workload with half of its actors.
func few() map[string]int {
	actors := worker.Loads()
	for name, n := range actors {
		actors[name] = max(n/2, 1)
	}
	return actors
}

func TestShortTortureFindsNothing(t *testing.T) {
	need(t, "redis-server", "redis-cli", "gcc")
	bin, err := mutant.Mutant{Name: "none"}.Build(t.Context(), here(t), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	seed := uint64(time.Now().UnixNano()) % 1_000_000
	// The histories of a run that found something are kept: its seed repeats the faults,
	// and not how goroutines meet them.
	dir := filepath.Join(os.TempDir(), fmt.Sprint("relock-torture-", seed))
	o := rig.Options{
		For: 48 * time.Second, Round: 7 * time.Second, Seed: seed, Bin: bin, Dir: dir, Log: t.Output(),
		Forms:   []string{server.Standalone, []string{server.Replicated, server.Skewed}[seed%2], server.Cluster, server.Sentinel},
		Workers: 2, Actors: few(), // the machine may be busy with other tests
	}
	t.Logf("seed %d", o.Seed)
	if _, err := rig.Run(ctx, o); err != nil {
		t.Fatal(err)
	}
	report, err := check.Run(o.Dir, check.Options{Cutouts: -1, WakeSlack: time.Second, Minimums: &check.Minimums{
		Grants: 1000, Faults: 10, Effects: 1000, Cancelled: 50, Waits: 500,
		Swept: []string{"key", "goroutine", "connection"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if !report.OK() {
		t.Fatalf("seed %d, histories in %s:\n%s", o.Seed, o.Dir, report.Markdown())
	}
	if err := os.RemoveAll(o.Dir); err != nil {
		t.Error(err)
	}
}

// TestMutantsAreCaught tries two that are seen soon; with allEnv all of them.
func TestMutantsAreCaught(t *testing.T) {
	need(t, "redis-server", "gcc")
	quick := map[string]bool{"the lock is handed to two": true, "the queue is served from its tail": true}
	for _, m := range mutant.All {
		if !quick[m.Name] && os.Getenv(allEnv) != "1" {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			caught, err := catch(t.Context(), m, 1, t.Output())
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("caught after %v: %s", caught.After.Round(time.Millisecond), caught.By)
		})
	}
}

// TestMutantsNameWhatExists keeps the table from rotting: each text is there, and what replaces it in Go compiles.
func TestMutantsNameWhatExists(t *testing.T) {
	for _, m := range mutant.All {
		overlay, err := m.Overlay(mutant.Root(here(t)), t.TempDir())
		switch {
		case err != nil:
			t.Error(err)
		case slices.ContainsFunc(m.Edits, func(e mutant.Edit) bool { return strings.HasSuffix(e.File, ".go") }):
			build := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, ".")
			build.Dir = mutant.Root(here(t))
			if out, err := build.CombinedOutput(); err != nil {
				t.Errorf("mutant %q: %v\n%s", m.Name, err, out)
			}
		}
	}
}

func TestMutantWithoutItsTextIsAnError(t *testing.T) {
	m := mutant.Mutant{Name: "rotten", Edits: []mutant.Edit{{File: "lua/release.lua", Old: "no such text", New: ""}}}
	if _, err := m.Overlay(mutant.Root(here(t)), t.TempDir()); err == nil {
		t.Error("no error")
	}
}
