package relockweb_test

import (
	"encoding/json"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// What follows is the form that docs/operations.md promises.
type (
	listing struct {
		ReadAt   time.Time `json:"read_at"`
		TookMS   int64     `json:"took_ms"`
		More     bool      `json:"more"`
		Problems []string  `json:"problems"`
		Total    struct{ Locks, Holders, Waiters int }
		Locks    []lock `json:"locks"`
	}
	lock struct {
		Name, Kind  string
		RestingMS   int64 `json:"resting_ms"`
		HolderCount int   `json:"holder_count"`
		WaiterCount int   `json:"waiting"`
		CondWaiting int   `json:"cond_waiting"`
		Holders     []holder
	}
	holder struct {
		Owner, Label, Mode string
		Holds              int
		Token              int64
		LeaseMS            int64 `json:"lease_ms"`
		HeldMS             int64 `json:"held_ms"`
	}
	detail struct {
		ReadAt   time.Time `json:"read_at"`
		TookMS   int64     `json:"took_ms"`
		Problems []string
		Lock     lock
		Queue    []waiter
	}
	waiter struct {
		Owner, Label, Mode string
		WaitedMS           int64 `json:"waited_ms"`
	}
)

func TestJSONTellsWhatThePageTells(t *testing.T) {
	run(t, func(b *board) {
		h := b.hold("web-1", "a", relock.Owner("me"), relock.TTL(time.Minute), relock.NoWatchdog())
		b.hold("web-2", "b")
		b.queue("web-3", "a")
		virtual.Sleep(4*time.Second - time.Millisecond)
		want := lock{"a", "plain", 0, 1, 1, 0, []holder{{"me", "web-1", "lock", 1, h.Token(), 56_000, 4_000}}}
		var all listing
		b.json("/locks.json?prefix=a", &all)
		if all.Total.Locks != 1 || all.Total.Holders != 1 || all.Total.Waiters != 1 || all.More || !all.ReadAt.Equal(time.Now()) || len(all.Problems) != 0 ||
			len(all.Locks) != 1 || !reflect.DeepEqual(all.Locks[0], want) {
			t.Errorf("%+v, want %+v", all, want)
		}
		var one detail
		b.json("/lock.json?name=a", &one)
		if !reflect.DeepEqual(one.Lock, want) || len(one.Queue) != 1 || one.Queue[0].Label != "web-3" || one.Queue[0].Mode != "lock" || one.Queue[0].WaitedMS < 3_000 || one.Queue[0].Owner == "" {
			t.Errorf("%+v, want %+v and web-3 in the queue", one, want)
		}
		b.json("/locks.json", &all)
		if all.Total.Locks != 2 {
			t.Errorf("%d locks, want 2", all.Total.Locks)
		}
	})
}

// Lists are never null, and the fields are those in the page of the docs.
func TestJSONHasTheFormThatIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/operations.md")
	rig.Must(t, err)
	run(t, func(b *board) {
		b.lacks(b.get("/locks.json", http.StatusOK)+b.get("/lock.json?name=x", http.StatusOK), "null")
		b.hold("web-1", "a")
		b.queue("web-2", "a")
		virtual.Sleep(2 * time.Second)
		for i, address := range []string{"/locks.json", "/lock.json?name=a"} {
			blocks := strings.Split(string(text), "\n```json\n")
			if len(blocks) != 3 {
				t.Fatalf("docs/operations.md has %d blocks of JSON, want 2", len(blocks)-1)
			}
			documented, _, _ := strings.Cut(blocks[i+1], "\n```")
			if got, want := fields(t, b.get(address, http.StatusOK)), fields(t, documented); !slices.Equal(got, want) {
				t.Errorf("%s has the fields %q, documented are %q", address, got, want)
			}
		}
	})
}

// fields are the paths of all values in a text of JSON.
func fields(t *testing.T, text string) (paths []string) {
	t.Helper()
	var v any
	rig.Must(t, json.Unmarshal([]byte(text), &v))
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, one := range v {
				walk(path+"."+k, one)
			}
		case []any:
			paths = append(paths, path)
			for _, one := range v {
				walk(path+"[]", one)
			}
		default:
			paths = append(paths, path)
		}
	}
	walk("", v)
	slices.Sort(paths)
	return slices.Compact(paths)
}
