package relock_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"
)

// A schedule is what the scheduler decides: the setup, then one number a step.
type schedule []uint32

func (s schedule) String() string {
	var b strings.Builder
	for i, n := range s {
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(strconv.FormatUint(uint64(n), 36))
	}
	return b.String()
}

func parseSchedule(text string) (s schedule, err error) {
	for word := range strings.SplitSeq(text, ".") {
		n, err := strconv.ParseUint(word, 36, 32)
		if err != nil {
			return nil, fmt.Errorf("schedule %q: %w", text, err)
		}
		s = append(s, uint32(n))
	}
	if len(s) == 0 {
		return nil, errors.New("an empty schedule")
	}
	return s, nil
}

// drawSchedule is the schedule of a seed.
func drawSchedule(seed uint64) schedule {
	r := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	s := make(schedule, 1+15+r.IntN(50))
	for i := range s {
		s[i] = r.Uint32N(1 << 24)
	}
	return s
}

// A census counts what a run of the explorer has seen.
type census struct {
	schedules int
	steps     [64]int
	seen      map[string]int
}

func (t *census) count(what string) {
	if t.seen == nil {
		t.seen = map[string]int{}
	}
	t.seen[what]++
}

func (t *census) add(o census) {
	t.schedules += o.schedules
	for i, n := range o.steps {
		t.steps[i] += n
	}
	for what, n := range o.seen {
		t.count(what)
		t.seen[what] += n - 1
	}
}

// An outcome is what became of a schedule.
type outcome struct {
	wrong string
	census census
	trace []string
}

// explore runs a schedule.
func explore(t *testing.T, s schedule, traced bool) (o outcome) {
	t.Helper()
	defer func() {
		// A bubble whose goroutines wait for each other, or outlive it.
		if r := recover(); r != nil {
			o.wrong = fmt.Sprint(r)
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		cryptotest.SetGlobalRandom(t, 1) // nonces decide between entries of one ticket
		w := newWorld(t, decodeSetup(s[0]))
		if traced {
			w.trace = func(format string, args ...any) {
				o.trace = append(o.trace, fmt.Sprintf(format, args...))
			}
			w.say("%v", w.setup)
		}
		for _, n := range s[1:] {
			if w.wrong != "" {
				break
			}
			w.step(n)
		}
		if w.wrong == "" {
			w.finish()
		} else {
			w.close()
		}
		time.Sleep(3 * time.Second)
		w.census.schedules = 1
		o.wrong, o.census = w.wrong, w.census
	})
	return o
}

func TestExploreReplay(t *testing.T) {
	text := os.Getenv("RELOCK_EXPLORE_REPLAY")
	if text == "" {
		t.Skip("left out: RELOCK_EXPLORE_REPLAY names no schedule")
	}
	s, err := parseSchedule(text)
	if err != nil {
		t.Fatal(err)
	}
	o := explore(t, s, true)
	t.Log("\n" + strings.Join(o.trace, "\n"))
	if o.wrong != "" {
		t.Error(o.wrong)
	}
}

func TestExplorationFindsNothing(t *testing.T) {
	var all census
	began := time.Now()
	for seed := range uint64(envInt(t, "RELOCK_EXPLORE_SCHEDULES", 100)) {
		seed += uint64(envInt(t, "RELOCK_EXPLORE_SEED", 0))
		s := drawSchedule(seed)
		o := explore(t, s, false)
		all.add(o.census)
		if o.wrong != "" {
			short, again := shrink(t, s, 20*time.Second)
			t.Errorf("seed %d: %s; %s\nRELOCK_EXPLORE_REPLAY=%v", seed, o.wrong, again.wrong, short)
			break
		}
	}
	t.Log(all, time.Since(began)/time.Duration(all.schedules))
}

func envInt(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

func TestScheduleRunsTheSameAgain(t *testing.T) {
	differ := 0
	for seed := range uint64(envInt(t, "RELOCK_EXPLORE_SCHEDULES", 60)) {
		s := drawSchedule(seed)
		first, second := explore(t, s, true), explore(t, s, true)
		for i := range min(len(first.trace), len(second.trace)) {
			if first.trace[i] != second.trace[i] {
				differ++
				t.Logf("seed %d %v, line %d of %d and %d:\n%s\n%s\n%s", seed, decodeSetup(s[0]), i, len(first.trace), len(second.trace), strings.Join(first.trace[max(i-3, 0):i], "\n"), first.trace[i], second.trace[i])
				break
			}
		}
	}
	t.Log("differ:", differ)
}
