//go:build unix

// Package layout_test holds that builds whose keys and messages differ never share a lock, and that a script
// does not change unnoticed. The vectors in it let a client in another language prove itself.
package layout_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/spawn"
	"github.com/relock-go/relock/lua"
)

// otherLayout is that of the other build.
const otherLayout = "9"

// otherBuild builds the command with another number of the layout, in Go and in Lua, and returns its path.
func otherBuild(t *testing.T) string {
	t.Helper()
	dir, root := t.TempDir(), rig.Root(t)
	replaced := map[string]string{}
	for file, edit := range map[string][2]string{
		"lua/lua.go":            {`const Layout = "` + lua.Layout + `"`, `const Layout = "` + otherLayout + `"`},
		"lua/shared_record.lua": {"local layout = '." + lua.Layout + "'", "local layout = '." + otherLayout + "'"},
	} {
		text, err := os.ReadFile(filepath.Join(root, file))
		rig.Must(t, err)
		if strings.Count(string(text), edit[0]) != 1 {
			t.Fatalf("%s does not have %s once", file, edit[0])
		}
		changed := filepath.Join(dir, filepath.Base(file))
		rig.Must(t, os.WriteFile(changed, []byte(strings.Replace(string(text), edit[0], edit[1], 1)), 0o600))
		replaced[filepath.Join(root, file)] = changed
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	rig.Must(t, err)
	rig.Must(t, os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600))
	program := filepath.Join(dir, "relock")
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program, "./cmd/relock")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return program
}

// A run is a command of the other build.
type run struct {
	held   bool // its command was started
	said   func() string
	finish func() // lets the command end, and waits for the run
}

// runs starts `relock run` of the other build, and returns when it holds or has given up.
func runs(t *testing.T, program, addr string, args ...string) run {
	t.Helper()
	cmd := exec.Command(program, append(append([]string{"run", "-redis", "redis://" + addr}, args...), "l", "sh", "-c", "echo held; cat")...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	in, err := cmd.StdinPipe()
	rig.Must(t, err)
	out, inner := io.Pipe()
	cmd.Stdout = inner
	gone, err := spawn.Start(cmd)
	rig.Must(t, err)
	go func() {
		<-gone
		_ = inner.Close()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	finish := func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		<-gone
	}
	t.Cleanup(finish)
	return run{line == "held\n", func() string { <-gone; return complaint.String() }, finish}
}

// Two builds of different layouts want one name, of each kind and in both orders.
// Fails when one gets it beside the other, waits for it, or does not say which layouts they have.
func TestBuildsOfTwoLayoutsNeverHoldOneNameTogether(t *testing.T) {
	program, srv := otherBuild(t), redistest.Real(t)
	c := rig.Open(t, srv.Client(t))
	for name, kind := range map[string]struct {
		lock func() *relock.Lock
		args []string
	}{
		"plain":     {func() *relock.Lock { return c.NewLock("l") }, nil},
		"fair":      {func() *relock.Lock { return c.NewLock("l", relock.Fair()) }, []string{"-fair"}},
		"reading":   {func() *relock.Lock { return c.NewRWLock("l").RLocker() }, []string{"-read"}},
		"writing":   {func() *relock.Lock { return c.NewRWLock("l").WLocker() }, []string{"-write"}},
		"semaphore": {func() *relock.Lock { return c.NewSemaphore("l", 3) }, []string{"-n", "3"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, wait := range [][]string{{"-wait", "0"}, {"-wait", "1m"}} {
				meet(t, kind.lock(), program, srv.Addr(), append(wait, kind.args...))
			}
		})
	}
}

// meet has first this build hold the lock, and then the other one.
func meet(t *testing.T, mine *relock.Lock, program, addr string, args []string) {
	t.Helper()
	rig.Must(t, mine.Lock(t.Context()))
	if theirs := runs(t, program, addr, args...); theirs.held {
		t.Error("the other build holds beside this one")
	} else if said := theirs.said(); !strings.Contains(said, "layout "+lua.Layout+" ") || !strings.Contains(said, "layout "+otherLayout+";") {
		t.Errorf("the other build says %q", said)
	}
	rig.Must(t, mine.Unlock())

	theirs := runs(t, program, addr, args...)
	if !theirs.held {
		t.Fatalf("the other build does not get a lock that is free: %s", theirs.said())
	}
	err := mine.Lock(t.Context())
	rig.WantIs(t, err, relock.ErrKind)
	if err != nil && (!strings.Contains(err.Error(), "layout "+otherLayout+" ") || !strings.Contains(err.Error(), "layout "+lua.Layout+";")) {
		t.Errorf("this build says %v", err)
	}
	_, err = mine.TryLock(t.Context(), 0)
	rig.WantIs(t, err, relock.ErrKind)
	theirs.finish()
	rig.Must(t, mine.Lock(t.Context()))
	rig.Must(t, mine.Unlock())
}
