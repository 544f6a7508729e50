package layout_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/script"
	"github.com/relock-go/relock/lua"
)

// RELOCK_LAYOUT=write has the files written: `make layout`. RELOCK_RELEASED names the release that the newest
// layout comes with: `make layout RELEASED=v1.0.0`.
const (
	layoutEnv   = "RELOCK_LAYOUT"
	releasedEnv = "RELOCK_RELEASED"
)

const instruction = "If the change is meant, `make layout` writes the files anew, and the commit says why."

// A layout is the sums of what clients of different builds must agree on.
type layout struct {
	Layout   string            `json:"layout"`
	Released string            `json:"released"` // the first release that has it; "": it may still change
	Scripts  map[string]string `json:"scripts"`  // the SHA-1 of each script, without comments and blank lines
	Calls    map[string]string `json:"calls"`    // of each vector: what is sent, answered, stored and published
}

// today is the layout of the sources.
func today(t *testing.T, all []vector) layout {
	t.Helper()
	now := layout{Layout: lua.Layout, Scripts: map[string]string{}, Calls: map[string]string{}}
	for _, name := range operations(t) {
		now.Scripts[name] = script.MustLoad(lua.FS, name).SHA
	}
	for _, v := range all {
		v.SHA1 = ""
		text, err := json.Marshal(v)
		rig.Must(t, err)
		sum := sha256.Sum256(text)
		now.Calls[v.Script+"/"+v.Case] = hex.EncodeToString(sum[:8])
	}
	return now
}

// with returns all layouts when the newest is that of today, or why it may not be.
func with(all []layout, now layout) ([]layout, error) {
	if len(all) == 0 {
		return []layout{now}, nil
	}
	last := all[len(all)-1]
	switch {
	case now.Layout != last.Layout && last.Released == "":
		return nil, fmt.Errorf("layout %s is in no release yet: change it, and keep its number", last.Layout)
	case now.Layout != last.Layout && slices.ContainsFunc(all, func(l layout) bool { return l.Layout == now.Layout }):
		return nil, fmt.Errorf("layout %s is an old one", now.Layout)
	case now.Layout != last.Layout:
		return append(slices.Clone(all), now), nil
	}
	if now.Released = last.Released; last.Released != "" {
		changed := differing(last.Scripts, now.Scripts)
		for name, sum := range last.Calls { // new calls may be added
			if now.Calls[name] != sum {
				changed = append(changed, name)
			}
		}
		if len(changed) > 0 {
			slices.Sort(changed)
			return nil, fmt.Errorf("layout %s is in use since %s, and these have changed: %s; give the layout the next number in lua/lua.go and lua/shared_record.lua",
				last.Layout, last.Released, strings.Join(changed, ", "))
		}
	}
	return append(slices.Clone(all[:len(all)-1]), now), nil
}

// differing are the names whose sums differ.
func differing(a, b map[string]string) (names []string) {
	for name := range a {
		if a[name] != b[name] {
			names = append(names, name)
		}
	}
	for name := range b {
		if _, both := a[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

const layoutFile = "layout.json"

func readLayouts(t *testing.T) (all []layout) {
	t.Helper()
	text, err := os.ReadFile(layoutFile)
	rig.Must(t, err)
	rig.Must(t, json.Unmarshal(text, &all))
	return all
}

// A script or a call has changed.
// Fails when that was not written down by `make layout`; which refuses it for a layout that is in a release.
func TestAChangedScriptNeedsANewLayout(t *testing.T) {
	vectors := record(t)
	now, before := today(t, vectors), readLayouts(t)
	now.Released = os.Getenv(releasedEnv)
	after, err := with(before, now)
	if err != nil {
		t.Fatal(err)
	}
	if last := &after[len(after)-1]; os.Getenv(releasedEnv) != "" && last.Released == "" {
		last.Released = os.Getenv(releasedEnv)
	}
	text, err := json.MarshalIndent(after, "", "  ")
	rig.Must(t, err)
	files := encode(t, vectors)
	files[layoutFile] = string(text) + "\n"
	if os.Getenv(layoutEnv) == "write" {
		write(t, files)
		return
	}
	last := before[len(before)-1]
	for _, name := range differing(last.Scripts, now.Scripts) {
		t.Errorf("script %s is not the one of layout %s in %s. %s", name, last.Layout, layoutFile, instruction)
	}
	for name, want := range files {
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s is not what the sources make (%v). %s", name, err, instruction)
		}
	}
}

// write writes files, and removes vectors of scripts that are gone.
func write(t *testing.T, files map[string]string) {
	t.Helper()
	old, err := filepath.Glob("vectors/*.json")
	rig.Must(t, err)
	for _, name := range old {
		if _, still := files[name]; !still {
			rig.Must(t, os.Remove(name))
		}
	}
	rig.Must(t, os.MkdirAll("vectors", 0o755))
	for name, text := range files {
		rig.Must(t, os.WriteFile(name, []byte(text), 0o644))
	}
}

// Fails when the rule of the test above lets a released layout change, or refuses what may change.
func TestAReleasedLayoutDoesNotChange(t *testing.T) {
	sums := func(number, released, acquire, call string, more ...string) layout {
		l := layout{number, released, map[string]string{"acquire": acquire}, map[string]string{"acquire/free": call}}
		for _, name := range more {
			l.Calls[name] = "c"
		}
		return l
	}
	open, closed := sums("1", "", "a", "b"), sums("1", "v1.0.0", "a", "b")
	for name, c := range map[string]struct {
		before layout
		now    layout
		want   string // of the error
		n      int
	}{
		"an open one changes":                  {open, sums("1", "", "x", "y"), "", 1},
		"an open one gets another number":      {open, sums("2", "", "x", "y"), "in no release yet", 0},
		"a released one stays":                 {closed, sums("1", "", "a", "b"), "", 1},
		"a released one gets another vector":   {closed, sums("1", "", "a", "b", "acquire/more"), "", 1},
		"a script of a released one changes":   {closed, sums("1", "", "x", "b"), "since v1.0.0, and these have changed: acquire;", 0},
		"a call of a released one changes":     {closed, sums("1", "", "a", "x"), "changed: acquire/free;", 0},
		"a script changes with another number": {closed, sums("2", "", "x", "b"), "", 2},
	} {
		after, err := with([]layout{c.before}, c.now)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if len(after) != c.n || c.n > 0 && after[0].Released != c.before.Released {
			t.Errorf("%s: %v", name, after)
		}
	}
	if _, err := with([]layout{closed, sums("2", "v2.0.0", "x", "b")}, sums("1", "", "a", "b")); err == nil {
		t.Error("the number goes back")
	}
}

var (
	luaLayout = regexp.MustCompile(`(?m)^local layout = '\.(\d+)'$`)
	release   = regexp.MustCompile(`(?m)^## \[(\d+\.\d+\.\d+)\]`)
)

// Fails when Go, Lua, the page and the changelog disagree about the layout.
func TestTheLayoutIsTheSameEverywhere(t *testing.T) {
	root := rig.Root(t)
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(root, name))
		rig.Must(t, err)
		return string(text)
	}
	if got := luaLayout.FindStringSubmatch(read("lua/shared_record.lua")); got == nil || got[1] != lua.Layout {
		t.Errorf("lua/shared_record.lua has the layout %v, and lua/lua.go has %s", got, lua.Layout)
	}
	all, page := readLayouts(t), read("docs/protocol.md")
	for _, l := range all {
		row := "| " + l.Layout + " | "
		if l.Released == "" {
			row += "none yet |"
		} else {
			row += l.Released
		}
		if !strings.Contains(page, row) {
			t.Errorf("docs/protocol.md has no row %q", row)
		}
	}
	if got := all[len(all)-1]; release.MatchString(read("CHANGELOG.md")) && got.Released == "" {
		t.Errorf("there is a release, and layout %s is in none: make layout RELEASED=v...", got.Layout)
	}
	if names := slices.Sorted(maps.Keys(all[len(all)-1].Scripts)); !slices.Equal(names, operations(t)) {
		t.Errorf("%s has the sums of %v, and there are %v. %s", layoutFile, names, operations(t), instruction)
	}
}
