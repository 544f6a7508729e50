package relock_test

import (
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/lua"
)

// foundByExploration are rules that the explorer must miss when they are gone,
// each within the given number of schedules. They are taken out as in mutation_test.go.
var foundByExploration = map[string]int{
	"the holder is an acquisition, not a process":    40,
	"an owner is not a session":                      40,
	"a grant lasts until its last session":           40,
	"a session is found by client and nonce":         100,
	"a session ends by its own deadline":             250,
	"a dead entry is passed over":                    40,
	"a hand-off gives the rest of the entry's lease": 150,
	"tokens go on from the counter":                  40,
	"tickets of named owners go on from the last":    40,
	"force settles":                                  150,
	"a release serves the queue":                     40,
	"a newcomer stands behind the queue":             40,
	"a writer waits for readers":                     40,
}

// furtherRules are broken beside those of mutation_test.go.
var furtherRules = []mutation{
	{"a grant is in the counter", "lua/shared_settle.lua", "'token', text(state.token))", "'kind', state.kind)", nil},
	{"a release serves the queue", "lua/release.lua", "  more = settle()", "  more = 0", nil},
	{"a newcomer stands behind the queue", "lua/acquire.lua", "if state.queued == 0 and not (", "if not (", nil},
	{"a writer waits for readers", "lua/shared_settle.lua", "elseif waiter.mode == 'w' and blocked() then", "elseif waiter.mode == 'w' and false then", nil},
}

// TestExplorerFindsWhatIsBroken takes rules out of the scripts one at a time.
func TestExplorerFindsWhatIsBroken(t *testing.T) {
	all := slices.Concat(safetyRules, livenessRules, furtherRules)
	for _, m := range all {
		limit, ok := foundByExploration[m.name]
		if os.Getenv("RELOCK_EXPLORE_MUTANTS") != "" {
			limit, ok = envInt(t, "RELOCK_EXPLORE_MUTANTS", 0), strings.HasPrefix(m.file, "lua/")
		}
		if !ok {
			continue
		}
		t.Run(strings.ReplaceAll(m.name, " ", "_"), func(t *testing.T) {
			defer relock.SwapScripts(broken(t, m))()
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
func broken(t *testing.T, m mutation) fs.FS {
	t.Helper()
	files := fstest.MapFS{}
	names, err := fs.Glob(lua.FS, "*.lua")
	for _, name := range names {
		var text []byte
		if text, err = fs.ReadFile(lua.FS, name); err != nil {
			break
		}
		if "lua/"+name == m.file {
			var without string
			if without, err = m.apply(string(text)); err != nil {
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
