package nemesis_test

import (
	"reflect"
	"testing"

	"github.com/relock-go/relock/test/torture/history"
	"github.com/relock-go/relock/test/torture/nemesis"
	"github.com/relock-go/relock/test/torture/server"
)

var forms = []string{server.Standalone, server.Replicated, server.Cluster, server.Sentinel, server.Skewed}

func TestScheduleFollowsFromItsSeed(t *testing.T) {
	for _, form := range forms {
		a, b := nemesis.Schedule(7, 3, form, nil, 200), nemesis.Schedule(7, 3, form, nil, 200)
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%s: one seed has two schedules", form)
		}
		for _, other := range []nemesis.Lanes{nemesis.Schedule(8, 3, form, nil, 200), nemesis.Schedule(7, 4, form, nil, 200)} {
			if reflect.DeepEqual(a, other) {
				t.Errorf("%s: another seed or round has the same schedule", form)
			}
		}
	}
}

func TestEveryKindIsInSomeSchedule(t *testing.T) {
	seen := map[string]int{}
	for _, form := range forms {
		for _, steps := range nemesis.Schedule(1, 0, form, nil, 40) {
			for _, step := range steps {
				seen[step.Kind]++
			}
		}
	}
	for _, kind := range nemesis.Kinds() {
		if seen[kind] == 0 {
			t.Errorf("no schedule has %q", kind)
		}
	}
}

func TestScheduleKeepsToTheKindsAskedFor(t *testing.T) {
	for lane, steps := range nemesis.Schedule(1, 0, server.Standalone, []string{history.Cut}, 10) {
		for _, step := range steps {
			if step.Kind != history.Cut {
				t.Errorf("%s has %s", lane, step)
			}
		}
	}
}
