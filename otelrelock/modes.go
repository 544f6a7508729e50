package otelrelock

import (
	"sync"

	"github.com/relock-go/relock"
)

// A holder is an owner of a read/write lock. It does not include the token, because a wait on a condition
// changes the token.
type holder struct{ name, kind, owner string }

// modes are each holder's counted holds, for writing and for reading. No hook reports a Downgrade: after one,
// a hold that was counted for writing ends as one for reading.
type modes struct {
	mu   sync.Mutex
	live map[holder][2]int64
}

// count adds by to the holder's count: 1 for a hold that begins, -1 for one that ends. It reports whether
// that hold counts as reading. If the holder has no counted hold of that mode, a hold that ends is subtracted
// from the other mode.
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
