package wire

import (
	"hash/fnv"

	"github.com/relock-go/relock/internal/room"
)

// A token is an instant in microseconds times unit, plus the owner's digits, which are below owners. owners is so small
// that a float64, as JavaScript has it, can tell the tokens of neighbouring instants apart until the year 2116.
const unit, owners = 1000, 488

// Token returns the fencing token of a grant. Redis gives each grant its own instant, in microseconds; the last three
// digits come from the owner's name. After a failover the old primary and the new one may both give out the same
// instant: the digits make the tokens of two owners differ. They never change the order of two instants. A branch
// has the digits of the owner from which it descends, since its hold has the token of the hold that it entered. Read as
// a number, a token is about the nanoseconds since 1970; it fits an int64 until 2262.
func Token(instant int64, owner string) int64 {
	digits := fnv.New32a()
	_, _ = digits.Write([]byte(room.Root(owner))) // it never fails
	return instant*unit + int64(digits.Sum32()%owners)
}

// Instant returns the part of a token that Redis stores.
func Instant(token int64) int64 { return token / unit }
