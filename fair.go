package relock

// Fair gives the lock to those who wait in the order in which they came, over
// all processes: the order of Redis' clock, at which each of them stands in one
// queue. TryLock does not overtake them either. A waiter that is cut off from
// Redis for longer than its TTL loses its turn, not its place. Without Fair, a
// process may pass the lock between its own waiters for up to 10 ms.
//
// Every waiter has its own entry in the queue, but for the calls of one named owner in
// one client, which re-enter what the first of them is granted. A hold is handed over by
// Redis, which costs two commands, but where the next in that order is a call of the same
// client: then it is passed on without any, to 15 calls in a row at most, if they have no
// name and ask on the same terms. A fair lock and a plain one are two kinds, and one
// name is of one kind at a time.
func Fair() LockOption {
	return lockOption(func(t *terms) error {
		t.fair = true
		return nil
	})
}

// apart has a primary's grant be of one hold: what that has raised the counter to is not of
// the lock's own tokens, which a next hold would have.
var apart = lockOption(func(t *terms) error {
	t.Apart = true
	return nil
})
