package store_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/relock-go/relock/test/torture/history"
	"github.com/relock-go/relock/test/torture/store"
)

// open returns a store that writes its decisions to path, and a client of it.
func open(t *testing.T, path string) (*store.Store, *store.Client) {
	t.Helper()
	out, err := history.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(filepath.Dir(path), "s")
	s, err := store.Listen(socket, out)
	if err != nil {
		t.Fatal(err)
	}
	c, err := store.Dial(socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return s, c
}

func TestStoreThatHasClosedHasWrittenItsDecisions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "effects.jsonl")
	s, c := open(t, path)
	if _, err := c.Do(store.Effect{Lock: "d/l", Mode: "w", Token: 5}); err != nil {
		t.Fatal(err)
	}
	s.Close()
	text, err := os.ReadFile(path)
	if err != nil || len(text) == 0 {
		t.Errorf("the history has %q, %v", text, err)
	}
}

func TestStoreTakesNothingStale(t *testing.T) {
	s, c := open(t, filepath.Join(t.TempDir(), "effects.jsonl"))
	defer s.Close()
	write := func(id int64, owner string, token int64) store.Effect {
		return store.Effect{Worker: 1, ID: id, Lock: "d/l", Mode: "w", Owner: owner, Token: token}
	}
	read := write(4, "", 6)
	read.Mode = "r"
	for i, step := range []struct {
		effect store.Effect
		want   string
	}{
		{write(1, "", 5), store.Accepted},
		{write(1, "", 5), store.Accepted}, // the same hold again
		{write(2, "", 5), store.Twice},    // another hold with its token
		{write(2, "", 4), store.Stale},
		{read, store.Accepted},
		{write(2, "", 5), store.Twice}, // a read has not advanced the maximum
		{write(5, "o", 7), store.Accepted},
		{write(6, "o", 7), store.Accepted}, // another hold of the same owner's grant
		{write(6, "p", 7), store.Twice},
		{read, store.Stale},
	} {
		got, err := c.Do(step.effect)
		if err != nil || got.Verdict != step.want {
			t.Errorf("step %d: %q, %v, want %q", i, got.Verdict, err, step.want)
		}
	}
}

func TestBufferIsMovedByWhoLookedLast(t *testing.T) {
	s, c := open(t, filepath.Join(t.TempDir(), "effects.jsonl"))
	defer s.Close()
	for i, step := range []struct {
		token, item int64
		do          string
		want        store.Answer
	}{
		{5, 0, store.Look, store.Answer{}},
		{5, 1, store.Put, store.Answer{Items: 1, First: 1}},
		{6, 2, store.Put, store.Answer{Items: 2, First: 1}},
		{5, 1, store.Take, store.Answer{Verdict: store.Stale, Items: 2, First: 1}},
		{7, 0, store.Look, store.Answer{Items: 2, First: 1}},
		{7, 1, store.Take, store.Answer{Items: 1, First: 2}},
		{7, 1, store.Take, store.Answer{Items: 1, First: 2}}, // it is the history that says so
	} {
		got, err := c.Do(store.Effect{Worker: 1, ID: step.token, Lock: "d/l", Mode: "w", Token: step.token, Do: step.do, Item: step.item, Room: 2})
		if err != nil || got != step.want {
			t.Errorf("step %d: %+v, %v, want %+v", i, got, err, step.want)
		}
	}
}

func TestALetterIsReadAsOftenAsItMayBe(t *testing.T) {
	s, c := open(t, filepath.Join(t.TempDir(), "effects.jsonl"))
	defer s.Close()
	for _, e := range []store.Effect{{Lock: "l", Do: store.Post, Item: 2, Text: "one"}, {Lock: "l", Do: store.Post, Item: 1, Text: "two"}} {
		if _, err := c.Do(e); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []string{"one", "one", "two", ""} {
		got, err := c.Do(store.Effect{Lock: "l", Do: store.Fetch})
		if err != nil || got.Text != want {
			t.Errorf("letter %d: %q, %v, want %q", i, got.Text, err, want)
		}
	}
}
