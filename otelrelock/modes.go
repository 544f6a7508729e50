package otelrelock

import (
	"sync"

	"github.com/relock-go/relock"
)

// A holder is an owner of a read/write lock. Its token is not part of it: it changes as a
// wait on a condition ends.
type holder struct{ name, kind, owner string }

// modes are the holds of each holder as they were counted, for writing and for reading. No hook
// tells of a Downgrade, after which a hold that was counted for writing ends as one for reading.
type modes struct {
	mu   sync.Mutex
	live map[holder][2]int64
}

// count counts a hold that begins, or with -1 one that ends, and says whether that is to be for
// reading. One that ends as no other of its holder was counted ends as the others were.
func (m *modes) count(e relock.Event, by int64) (read bool) {
	if e.Kind != "rw" && e.Kind != "fair rw" {
		return e.Read
	}
	k, side := holder{e.Name, e.Kind, e.Owner}, 0
	if e.Read {
		side = 1
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.live[k]
	if by < 0 && n[side] <= 0 && n[1-side] > 0 {
		side = 1 - side
	}
	n[side] += by
	switch {
	case n == [2]int64{}:
		delete(m.live, k)
	case m.live == nil:
		m.live = map[holder][2]int64{k: n}
	default:
		m.live[k] = n
	}
	return side == 1
}
