// Package redisson takes locks in the layout of Java's Redisson, so that Go and Java share them. It has Redisson's
// reentrant lock, fair lock, fenced lock and read/write lock. To Redisson's clients, a Client of this package looks
// like one of their own.
//
// Redisson's layout cannot give everything that relock's own locks promise. This package does not promise:
//
//   - A queue with hand-off. An unlock wakes one waiter of each client, and the fastest gets the lock. New callers may
//     overtake all of them. A fair lock keeps its order, but a dead waiter at the head of its queue holds up the others
//     until its deadline, minutes later.
//   - A token of a lock that is not Fenced. Without one, a resource cannot recognise a late write of a holder that has
//     lost the lock. Nor can it after a failover that lost the counter of a Fenced lock.
//   - Writers that are not starved by readers.
//   - Read holds with a long lease. A reader in Java may cut the leases of all readers to its lockWatchdogTimeout. The
//     option WatchdogTimeout tells this package that time.
//   - Holds that outlast a failover: writes that the promoted replica does not have are lost. This package does not
//     wait for replicas.
//   - relock's Hold.Wanted: a hold here does not learn that somebody waits.
//   - Owners across clients: an owner named by relock.WithOwner re-enters in its Client only, as a thread does in its
//     own JVM.
//
// A holder in Go checks its own clock. So it knows that its lease is over before any other client can get the lock. If
// somebody removes the lock from Redis, the next renewal finds that out. Holders in Java do not check a clock.
//
// docs/redisson.md says how to move a fleet lock by lock, and which versions of Redisson were tested.
package redisson
