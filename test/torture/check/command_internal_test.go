package check

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/relock-go/relock/test/torture/history"
)

// publish writes a history as a run leaves it: what the store saw, and what the workers saw, of which one file is packed.
// Each says that the run began long before, and for how long it was planned.
func publish(t *testing.T, x *tale, planned time.Duration) string {
	t.Helper()
	dir, files, begun := t.TempDir(), map[string]*bytes.Buffer{}, map[int]bool{}
	add := func(name string, e history.Event) {
		if files[name] == nil {
			files[name] = &bytes.Buffer{}
		}
		if err := json.NewEncoder(files[name]).Encode(e); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range x.events {
		name := "workers.jsonl"
		switch {
		case e.What == history.Effect:
			add("store.jsonl", e)
			continue
		case e.Worker%2 == 0:
			name = "more.jsonl.gz"
		}
		if !begun[e.Worker] {
			begun[e.Worker] = true
			add(name, history.Event{T: 1, Worker: e.Worker, What: history.Start, Until: 1 + int64(planned)})
		}
		add(name, e)
	}
	if files["workers.jsonl"] == nil || files["more.jsonl.gz"] == nil {
		t.Fatal("want a file that is packed, and one that is not")
	}
	for name, text := range files {
		whole := text.Bytes()
		if strings.HasSuffix(name, packed) {
			whole = pack(t, whole)
		}
		if err := os.WriteFile(filepath.Join(dir, name), whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func pack(t *testing.T, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(text)
	if err = errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestJudgePassesAGoodHistoryAndFailsAChangedOne(t *testing.T) {
	for _, c := range corruptions {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(200) {
				x := simulate(seed, c.kinds[0], seed%2 == 0 && c.kinds[0] != "semaphore", false, 60)
				good := &tale{kind: x.kind, events: slices.Clone(x.events)}
				if !c.do(x, x.input().stories[lock], rand.New(rand.NewPCG(seed, 1))) {
					continue // no place for it in this history
				}
				var out bytes.Buffer
				if err := Command([]string{"-part", publish(t, good, 0)}, &out); err != nil || !strings.Contains(out.String(), "PASSED") {
					t.Fatalf("the good one: %v\n%s", err, &out)
				}
				out.Reset()
				dir := publish(t, x, 0)
				before := names(t, dir)
				err := Command([]string{"-part", dir}, &out)
				if !errors.Is(err, ErrFailed) || !strings.Contains(out.String(), "FAILED") || !strings.Contains(out.String(), string(c.want[0])) {
					t.Fatalf("the changed one: %v, want %q\n%s", err, c.want, &out)
				}
				if after := names(t, dir); !slices.Equal(before, after) {
					t.Errorf("it left %q", after)
				}
				return
			}
			t.Error("no history has a place for it")
		})
	}
}

func TestJudgeWritesTheEventsAroundAViolationWhereItIsTold(t *testing.T) {
	out := t.TempDir()
	dir := publish(t, plain().
		hold(held{w: 1, id: 1, call: 1, got: 2, releasing: 500, released: 501, token: 10}).
		hold(held{w: 2, id: 1, call: 1, got: 100, releasing: 300, released: 301, token: 20}), 0)
	if err := Command([]string{"-part", "-out", out, dir}, io.Discard); !errors.Is(err, ErrFailed) {
		t.Fatal(err)
	}
	for _, want := range []string{"summary.json", "summary.md", "violation-01-"} {
		if all := names(t, out); !slices.ContainsFunc(all, func(name string) bool { return strings.HasPrefix(name, want) }) {
			t.Errorf("%q, want %s", all, want)
		}
	}
}

func TestJudgeFailsAHistoryThatIsTooShort(t *testing.T) {
	x := simulate(1, "plain", false, false, 60)
	var out bytes.Buffer
	if err := Command([]string{publish(t, x, 10*time.Minute)}, &out); !errors.Is(err, ErrFailed) || !strings.Contains(out.String(), string(TooLittle)) {
		t.Errorf("%v, want %q\n%s", err, TooLittle, &out)
	}
}

func TestJudgeHasNoVerdictOnWhatItCannotRead(t *testing.T) {
	good := publish(t, simulate(1, "plain", false, false, 60), 0)
	cut := t.TempDir()
	whole, err := os.ReadFile(filepath.Join(good, "more.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if err = os.WriteFile(filepath.Join(cut, "more.jsonl.gz"), whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	if err = os.WriteFile(filepath.Join(good, "more.jsonl"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"no histories": {"-part", t.TempDir()}, "no directory": {}, "two directories": {cut, good}, "cut short": {"-part", cut}, "there twice": {"-part", good},
	} {
		var out bytes.Buffer
		if err := Command(args, &out); err == nil || errors.Is(err, ErrFailed) || out.Len() > 0 {
			t.Errorf("%s: %v\n%s", name, err, &out)
		}
	}
}
