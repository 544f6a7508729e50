package wire

import (
	"time"

	"github.com/relock-go/relock/internal/script"
)

// Bounds of what a script can answer. Lua counts exactly up to 2^53. No lease lasts a century, not even if the clock
// has stepped back. A reply beyond these bounds does not come from our script.
const (
	maxCount = 1 << 53
	maxLease = 100 * 365 * 24 * 60 * 60 * 1000 // ms
)

// skip reads the empty fields of an answer that has none of its own.
func skip(cur *script.Cursor) {
	for range 3 {
		cur.Within("nothing", 0, 0)
	}
	cur.Str("nothing")
}

func serverTime(cur *script.Cursor) int64 { return cur.Within("now", 1, maxCount) }

func yes(cur *script.Cursor, field string) bool { return cur.Within(field, 0, 1) == 1 }

// isWanted says with a grant that somebody waits for it to end.
const isWanted = "+"

func wanted(cur *script.Cursor) bool {
	said := cur.Str("wanted")
	cur.Check(said == "" || said == isWanted, "wanted")
	return said == isWanted
}

// reads reads a mode, and reports whether it is that of a reader.
func reads(cur *script.Cursor) bool {
	mode := cur.Str("mode")
	cur.Check(mode == modeRead || mode == modeWrite || mode == modeUse, "mode")
	return mode == modeRead
}

func tokens(cur *script.Cursor) (low, high int64) {
	low = cur.Within("low", 1, maxCount)
	return low, cur.Within("high", low, maxCount)
}

// lease reads how much of a hold's lease is left. 0 or less is no error: the lease has ended.
func lease(cur *script.Cursor) time.Duration {
	return millis(cur.Within("remaining", -maxLease, maxLease))
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
