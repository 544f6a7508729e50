package wire

import "hash/fnv"

// ofOwner is how many owners a token tells apart within one microsecond.
const ofOwner = 1000

// Token is the fencing token of an owner's grant: the instant of the grant, which Redis
// counts in microseconds and never gives out twice, and three digits of the owner behind
// it. Two primaries of which one has not heard yet that the other relieved it may both
// give out an instant: to two owners, whose tokens differ by those digits. They do not
// change the order of two instants. A token is nanoseconds since 1970, until 2262.
func Token(instant int64, owner string) int64 {
	digits := fnv.New32a()
	_, _ = digits.Write([]byte(owner)) // it never fails
	return instant*ofOwner + int64(digits.Sum32()%ofOwner)
}

// Instant is what Redis knows a token by.
func Instant(token int64) int64 { return token / ofOwner }
