package history_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/relock-go/relock/test/torture/history"
)

func TestWriterWritesWhatJSONReads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.jsonl")
	w, err := history.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	want := history.Event{
		T: 1, Worker: -1, What: history.Fault, ID: 2, Lock: "d/\"l\n", Kind: "plain", Mode: "w", Owner: "ö<>", Token: 3,
		TTL: 4, Until: 5, Err: "e", Fault: "f", On: "o", By: 6,
	}
	w.Add(want)
	w.Flush()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got history.Event
	if err := json.Unmarshal(text, &got); err != nil || got != want {
		t.Errorf("%s reads %+v, %v", text, got, err)
	}
}
