// Package redisson takes locks in the layout of Redisson, so that Go and Java share them:
// its reentrant lock, fair lock, fenced lock and read/write lock. A Client here is to
// Redisson's clients one more of theirs.
//
// What that layout cannot give, this package does not promise, and relock's own does:
//
//   - A queue with hand-off. An unlock wakes a waiter of each client, and the fastest has
//     the lock; newcomers overtake. A fair lock keeps its order, but a waiter that dies at
//     the head of its queue holds up all others until its deadline, minutes later.
//   - A token of a lock that is not Fenced. What such a lock protects cannot tell a late
//     write of a holder that has lost it.
//   - Writers that are not starved by readers.
//   - Read holds with a long lease: any reader in Java may cut it to its lockWatchdogTimeout,
//     of which WatchdogTimeout tells this package.
//   - Holds that outlast a failover: what a replica has not got when it is promoted is lost.
//     This package does not wait for replicas.
//   - Short scripts in a crowd. A step in a fair lock's queue writes each waiter, and a read
//     unlock reads each hold: 25 and 20 ms among 10,000, in which the server does nothing else.
//   - Owners across clients: who is named (relock.WithOwner) re-enters in its Client only,
//     as a thread does in its own JVM.
//
// What it does promise: a holder in Go knows by its own clock that it has lost its lock
// before any other client can have it, except where somebody removes it from Redis, which
// the next renewal finds. Java's holders have no such clock.
//
// docs/redisson.md says how to move a fleet lock by lock, and with which versions of
// Redisson this was tried.
package redisson
