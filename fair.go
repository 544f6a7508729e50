package relock

// Fair makes the lock fair: waiters get it in the order in which they came to Redis, by its clock, over all processes.
// TryLock does not overtake waiters. A waiter that is cut off from Redis for longer than its TTL is passed over, but
// keeps its place. Without Fair, a process may pass the lock between its own waiters for up to 10 ms.
//
// Every waiter has its own entry in the queue. Only the calls of one named owner in one client share an entry, and
// re-enter what the first of them gets. If the next waiter is in another client, a hand-off costs two commands. To an
// anonymous call of the same client with the same options it costs none, for at most 15 calls in a row. A fair lock and
// a plain lock are two kinds: a name that is in use as the other kind returns ErrKind.
func Fair() LockOption {
	return lockOption(func(t *terms) error {
		t.fair = true
		return nil
	})
}

// oneToken takes one token for each grant, so no grant is passed on in the process. An Election tells its terms apart
// by it. A Quorum raises a primary's counter above the grant's token: a further one would be too small.
var oneToken = lockOption(func(t *terms) error {
	t.OneToken = true
	return nil
})
