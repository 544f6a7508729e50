package wire

import (
	"time"

	"github.com/relock-go/relock/internal/script"
)

// What a script can say. Lua counts exactly up to 2^53; no lease lasts a century,
// not even by a clock that has stepped back. What is beyond is another's reply.
const (
	maxCount = 1 << 53
	maxLease = 100 * 365 * 24 * 60 * 60 * 1000 // ms
)

// skip reads the fields of an answer that says nothing in them.
func skip(cur *script.Cursor) {
	for range 3 {
		cur.Within("nothing", 0, 0)
	}
	cur.Str("nothing")
}

func serverTime(cur *script.Cursor) int64 { return cur.Within("now", 1, maxCount) }

func yes(cur *script.Cursor, field string) bool { return cur.Within(field, 0, 1) == 1 }

func reads(cur *script.Cursor) bool {
	mode := cur.Str("mode")
	cur.Check(mode == modeRead || mode == modeWrite || mode == modeUse, "mode")
	return mode == modeRead
}

func tokens(cur *script.Cursor) (low, high int64) {
	low = cur.Within("low", 1, maxCount)
	return low, cur.Within("high", low, maxCount)
}

// lease reads what is left of a hold's lease. A hold whose lease has just ended
// is not trusted; that it has is no error.
func lease(cur *script.Cursor) time.Duration {
	return millis(cur.Within("remaining", -maxLease, maxLease))
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
