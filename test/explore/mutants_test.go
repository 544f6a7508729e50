package explore_test

import (
	"io/fs"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/lua"
	"github.com/relock-go/relock/test/mutation"
)

// found says where an explorer misses a rule: by a schedule from the first on, of which
// so many are tried. Those before it are tried last: they take longer and show no more.
type found struct{ first, within uint64 }

// by tries schedules, by number, until one finds something wrong.
func (f found) by(t *testing.T, explore func(number uint64) (wrong string)) {
	t.Helper()
	for i := range f.within {
		number := (f.first + i) % f.within
		if wrong := explore(number); wrong != "" {
			t.Logf("found by schedule %d: %s", number, wrong)
			return
		}
	}
	t.Errorf("%d schedules do not miss the rule", f.within)
}

// foundByExploration are rules that the explorer must miss when they are gone. They are
// taken out as in test/mutation.
var foundByExploration = map[string]found{
	"the holder is an acquisition, not a process":          {4, 40},
	"an owner is not a session":                            {39, 40},
	"a grant lasts until its last session":                 {26, 40},
	"a session is found by client and nonce":               {72, 100},
	"a session ends by its own deadline":                   {28, 250},
	"a dead entry is passed over":                          {8, 40},
	"a usual hand-off gives the rest of the entry's lease": {96, 150},
	"tokens go on from the counter":                        {0, 40},
	"places of named owners go on from the last":           {0, 40},
	"force settles":                                        {0, 150},
	"a release serves the queue":                           {0, 40},
	"a newcomer stands behind the queue":                   {0, 40},
	"a writer waits for readers":                           {0, 40},

	"branches of one flow exclude each other":                       {29, 60},
	"a branch that reads waits for one that writes":                 {60, 150},
	"a branch enters what an ancestor holds":                        {7, 60},
	"a branch that leaves lets the next one in":                     {49, 100},
	"a branch that waits enters once its ancestor holds":            {7, 60},
	"a branch has nothing when the hold that it entered has ended":  {105, 200},
	"what an ended branch had is in the way until its client knows": {0, 100},
}

// foundByTheModel are rules of branches that the model must miss in the scripts when they are gone.
var foundByTheModel = map[string]found{
	"branches of one flow exclude each other":                       {0, 6000},
	"a branch has nothing when the hold that it entered has ended":  {0, 6000},
	"what an ended branch had is in the way until its client knows": {0, 6000},
	"a branch that leaves lets the next one in":                     {0, 6000},
	"a ticket of a branch ends with its ancestor":                   {0, 6000},
	"the sessions inside a hold are counted":                        {0, 6000},
	"an owner waits for what is left of its ended hold":             {0, 6000},
}

// TestModelFindsWhatIsBroken takes rules out of the scripts one at a time, and compares them with the model that has them.
func TestModelFindsWhatIsBroken(t *testing.T) {
	for m, at := range rules(t, foundByTheModel) {
		t.Run(strings.ReplaceAll(m.Name, " ", "_"), func(t *testing.T) {
			defer rig.SwapScripts(broken(t, m))()
			differ, steps, _ := compare(t, modelServer(t), "nothing", func(steps int) bool { return uint64(steps) > at.within })
			if differ == "" {
				t.Fatalf("%d steps do not miss the rule", steps)
			}
			t.Logf("missed after %d steps", steps)
		})
	}
}

// TestExplorerFindsWhatIsBroken takes rules out of the scripts one at a time.
func TestExplorerFindsWhatIsBroken(t *testing.T) {
	table := foundByExploration
	if os.Getenv("RELOCK_EXPLORE_MUTANTS") != "" {
		table = map[string]found{}
		for _, m := range everyRule {
			if strings.HasPrefix(m.In, "lua/") {
				table[m.Name] = found{0, uint64(envInt(t, "RELOCK_EXPLORE_MUTANTS", 0))}
			}
		}
	}
	for m, at := range rules(t, table) {
		t.Run(strings.ReplaceAll(m.Name, " ", "_"), func(t *testing.T) {
			defer rig.SwapScripts(broken(t, m))()
			at.by(t, func(number uint64) string { return explore(t, drawSchedule(1<<33+number), false).wrong })
		})
	}
}

var everyRule = slices.Concat(mutation.All, mutation.Further)

// rules yields the rules of a table in the order of test/mutation. A name that no rule has fails the
// test: a rule that was renamed would be looked for no more.
func rules(t *testing.T, table map[string]found) iter.Seq2[mutation.Rule, found] {
	t.Helper()
	missing := maps.Clone(table)
	for _, m := range everyRule {
		delete(missing, m.Name)
	}
	for name := range missing {
		t.Errorf("test/mutation has no rule %q", name)
	}
	return func(yield func(mutation.Rule, found) bool) {
		for _, m := range everyRule {
			if at, ok := table[m.Name]; ok && !yield(m, at) {
				return
			}
		}
	}
}

// TestEveryRuleThatExplorersFindBreaksAScript takes no schedule, so it can run with every change.
func TestEveryRuleThatExplorersFindBreaksAScript(t *testing.T) {
	for _, table := range []map[string]found{foundByExploration, foundByTheModel, foundByConditions} {
		for m := range rules(t, table) {
			broken(t, m)
		}
	}
}

// broken is the scripts' text without a rule. A rule that changes no script fails the test.
func broken(t *testing.T, m mutation.Rule) fs.FS {
	t.Helper()
	changed, err := m.Without(mutation.NewCode(os.DirFS("../..")))
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{}
	names, err := fs.Glob(lua.FS, "*.lua")
	for _, name := range names {
		var text []byte
		if text, err = fs.ReadFile(lua.FS, name); err != nil {
			break
		}
		if without, ok := changed["lua/"+name]; ok {
			text = []byte(without)
		}
		files[name] = &fstest.MapFile{Data: text}
	}
	if err != nil {
		t.Fatal(err)
	}
	for name := range changed {
		if files[strings.TrimPrefix(name, "lua/")] == nil {
			t.Fatalf("the rule %q changes %s, which is no script: the explorer would break nothing", m.Name, name)
		}
	}
	return files
}
