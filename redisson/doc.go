// Package redisson takes locks in the layout of Redisson, so that Go and Java share them: its
// reentrant lock, fair lock, fenced lock and read/write lock. For Redisson's clients, a Client of
// this package is another one of theirs.
//
// Redisson's layout cannot give everything that relock's own locks promise. This package does not
// promise:
//
//   - A queue with hand-off. An unlock wakes a waiter of each client, and the fastest gets the
//     lock. New callers overtake. A fair lock keeps its order, but a dead waiter at the head of its
//     queue holds up the others until its deadline, minutes later.
//   - A token of a lock that is not Fenced. A resource cannot tell a late write of a holder that
//     has lost such a lock. Nor can it after a failover that lost the counter of a Fenced one.
//   - Writers that are not starved by readers.
//   - Read holds with a long lease: any reader in Java may cut it to its lockWatchdogTimeout,
//     which WatchdogTimeout tells this package.
//   - Holds that outlast a failover: writes that the promoted replica does not have are lost.
//     This package does not wait for replicas.
//   - Wanted: its holds do not learn that somebody waits.
//   - Owners across clients: an owner named by relock.WithOwner re-enters in its Client only, as
//     a thread does in its own JVM.
//
// A holder in Go knows by its own clock that it has lost its lock before any other client can get
// it. If somebody removes the lock from Redis, the next renewal finds that out. Holders in Java
// have no such clock.
//
// docs/redisson.md says how to move a fleet lock by lock, and which versions of Redisson were
// tested.
package redisson
