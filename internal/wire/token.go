package wire

import "hash/fnv"

// A token is microseconds times unit, and one of so many digits of owners behind them: few
// enough that a float64 keeps tokens of neighbouring instants apart, until 2116.
const unit, owners = 1000, 488

// Token is the fencing token of an owner's grant: the instant that Redis gave it, which it
// counts in microseconds and gives out once, and three digits of the owner behind that.
// After a failover the old primary and the new one may both give out an instant: to two
// owners, whose tokens differ by those digits. The digits do not change the order of two
// instants. A token is nanoseconds since 1970, until 2262.
func Token(instant int64, owner string) int64 {
	digits := fnv.New32a()
	_, _ = digits.Write([]byte(owner)) // it never fails
	return instant*unit + int64(digits.Sum32()%owners)
}

// Instant is what Redis knows a token by.
func Instant(token int64) int64 { return token / unit }
