package explore_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	mini "github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/redistest"
)

// play makes all steps of a run until the two sides differ.
func (r *modelRun) play(steps []uint32) (differ string) {
	r.steps = steps
	for _, n := range steps[1:] {
		if differ = r.step(n); differ != "" {
			return differ
		}
	}
	return ""
}

// compare plays runs against one server until they differ or enough is done. What is found because a rule is gone, on
// either side, is not made shorter.
func compare(t *testing.T, rdb *redis.Client, lacks string, enough func(steps int) bool) (differ string, steps int, seen map[string]int) {
	t.Helper()
	sub := subscribeModel(t, rdb)
	seen = map[string]int{}
	for seed := uint64(envInt(t, "RELOCK_MODEL_SEED", 1)); !enough(steps); seed++ {
		draw := rand.New(rand.NewPCG(seed, 77))
		run := make([]uint32, 60)
		for i := range run {
			run[i] = draw.Uint32()
		}
		r := newModelRun(t, rdb, sub)
		r.model.lacks = lacks
		differ = r.play(run)
		steps += len(r.said)
		for what, n := range r.seen {
			seen[what] += n
		}
		if differ == "" {
			continue
		}
		for i := 1; i < len(run) && lacks == ""; { // drop steps that are not needed
			c := slices.Delete(slices.Clone(run), i, i+1)
			again := newModelRun(t, rdb, sub)
			again.model.lacks = lacks
			if d := again.play(c); d != "" {
				run, r, differ = c, again, d
			} else {
				i++
			}
		}
		return fmt.Sprintf("seed %d: after\n%s\n%s", seed, strings.Join(r.said, "\n"), differ), steps, seen
	}
	return "", steps, seen
}

// modelled compares for some time, in which everything has to happen.
func modelled(t *testing.T, rdb *redis.Client, limit time.Duration) {
	began := time.Now()
	differ, steps, seen := compare(t, rdb, "", func(steps int) bool { return steps > 6000 && time.Since(began) > limit })
	if differ != "" {
		t.Fatal(differ)
	}
	t.Logf("%d steps, no divergence: %v", steps, seen)
	for _, what := range []string{
		"entrances", "entrances of those who waited", "told that it has ended", "tickets that have ended", "refused for what is left", "answer -6",
		"acquire", "hold", "release", "force", "downgrade", "messages", "resting", "resumed", "unseen", "served", "runs",
		"answer 1", "answer 2", "answer 3", "answer -2", "answer -3", "answer -4", "answer -5",
	} {
		if seen[what] == 0 {
			t.Errorf("%s: never seen", what)
		}
	}
}

// modelRules are rules that the model can do without. The scripts are left as they are, so no edit of
// a script's line concerns this list.
var modelRules = []string{
	"a grant is in the counter",
	"a release serves the queue",
	"a newcomer stands behind the queue",
	"a writer waits for readers",
	"what has ended is refused",
	"a named owner re-enters",
	"a dead entry is passed over",
	"branches of one flow exclude each other",
	"a branch has nothing when the hold that it entered has ended",
	"a branch is told that the hold it entered has ended",
	"what an ended branch had is in the way until its client knows",
	"a branch that waits is let in when another leaves",
	"a branch does not wait for the end of its ancestor",
	"a ticket of a branch ends with its ancestor",
	"an owner waits for what is left of its ended hold",
}

// TestModelMissesEveryRuleThatIsGone: a model without the rule and the scripts with it must differ,
// else the comparison would agree with anything.
func TestModelMissesEveryRuleThatIsGone(t *testing.T) {
	for _, rule := range modelRules {
		t.Run(strings.ReplaceAll(rule, " ", "_"), func(t *testing.T) {
			const most = 6000
			differ, steps, _ := compare(t, modelServer(t), rule, func(steps int) bool { return steps > most })
			if differ == "" {
				t.Fatalf("%d steps do not miss the rule", steps)
			}
			t.Logf("missed after %d steps", steps)
		})
	}
}

func modelServer(t *testing.T) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: mini.RunT(t).Addr(), Protocol: 2})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func TestScriptsDoWhatTheModelSays(t *testing.T) {
	limit := envDuration(t, "RELOCK_MODEL_FOR", 4*time.Second)
	t.Run("miniredis", func(t *testing.T) {
		modelled(t, modelServer(t), limit)
	})
	t.Run("redis", func(t *testing.T) {
		modelled(t, redistest.Real(t).Client(t, func(o *redis.Options) { o.Protocol = 2 }), limit)
	})
}
