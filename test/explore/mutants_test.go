package explore_test

import (
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/lua"
	"github.com/relock-go/relock/test/mutation"
)

// foundByExploration are rules that the explorer must miss when they are gone,
// each within the given number of schedules. They are taken out as in test/mutation.
var foundByExploration = map[string]int{
	"the holder is an acquisition, not a process":          40,
	"an owner is not a session":                            40,
	"a grant lasts until its last session":                 40,
	"a session is found by client and nonce":               100,
	"a session ends by its own deadline":                   250,
	"a dead entry is passed over":                          40,
	"a usual hand-off gives the rest of the entry's lease": 150,
	"tokens go on from the counter":                        40,
	"tickets of named owners go on from the last":          40,
	"force settles":                                        150,
	"a release serves the queue":                           40,
	"a newcomer stands behind the queue":                   40,
	"a writer waits for readers":                           40,
}

// TestExplorerFindsWhatIsBroken takes rules out of the scripts one at a time.
func TestExplorerFindsWhatIsBroken(t *testing.T) {
	all := slices.Concat(mutation.All, mutation.Further)
	for _, m := range all {
		limit, ok := foundByExploration[m.Name]
		if os.Getenv("RELOCK_EXPLORE_MUTANTS") != "" {
			limit, ok = envInt(t, "RELOCK_EXPLORE_MUTANTS", 0), strings.HasPrefix(m.File, "lua/")
		}
		if !ok {
			continue
		}
		t.Run(strings.ReplaceAll(m.Name, " ", "_"), func(t *testing.T) {
			defer rig.SwapScripts(broken(t, m))()
			for seed := range uint64(limit) {
				if o := explore(t, drawSchedule(1<<33+seed), false); o.wrong != "" {
					t.Logf("found by schedule %d: %s", seed+1, o.wrong)
					return
				}
			}
			t.Errorf("%d schedules do not miss the rule", limit)
		})
	}
}

// broken is the scripts' text without a rule.
func broken(t *testing.T, m mutation.Rule) fs.FS {
	t.Helper()
	files := fstest.MapFS{}
	names, err := fs.Glob(lua.FS, "*.lua")
	for _, name := range names {
		var text []byte
		if text, err = fs.ReadFile(lua.FS, name); err != nil {
			break
		}
		if "lua/"+name == m.File {
			var without string
			if without, err = m.Without(string(text)); err != nil {
				break
			}
			text = []byte(without)
		}
		files[name] = &fstest.MapFile{Data: text}
	}
	if err != nil {
		t.Fatal(err)
	}
	return files
}
