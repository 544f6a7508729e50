package relock

// Fair grants the lock in the order in which the waiters came, over all processes, by the clock of Redis. TryLock does
// not overtake waiters. A waiter that is cut off from Redis for longer than its TTL is passed over, but keeps its
// place. Without Fair, a process may pass the lock between its own waiters for up to 10 ms.
//
// Every waiter has its own entry in the queue. The calls of one named owner in one client share an entry, and re-enter
// what the first of them gets. If the next waiter is in another client, a hand-over costs two commands. To an anonymous
// call of the same client with the same options it costs none, for at most 15 calls in a row. A fair lock and a plain
// lock are two kinds: a name that is in use as the other kind returns ErrKind.
func Fair() LockOption {
	return lockOption(func(t *terms) error {
		t.fair = true
		return nil
	})
}

// oneToken requests a block of one token, so that the hold is never passed on within the process. Quorums need it: they
// raise the counter of a primary beyond the lock's own tokens, and a passed-on hold would have one of these.
var oneToken = lockOption(func(t *terms) error {
	t.OneToken = true
	return nil
})
