// Package relock is a distributed lock on Redis and Valkey. It tells the holder when the lock is lost, and gives every
// grant a fencing token, so that a late write can be refused.
//
// There are exclusive locks, read/write locks and semaphores. They are reentrant for a named owner, have a queue of
// waiters, and are renewed while they are held. Their contracts are those of Java's java.util.concurrent, as far as a
// lock that can be lost allows.
//
//	client, err := relock.New(rdb) // any redis.UniversalClient but Ring
//	lock := client.NewLock("orders/4711")
//	err = lock.Do(ctx, func(ctx context.Context) error {
//		... // nobody else, in any process, is here; ctx ends if the lock is lost
//	})
//
// # A lease, not a possession
//
// Redis grants a lock for a time, its lease ([TTL], 30 s by default). While the holder lives and reaches Redis, the
// client's watchdog renews the lease each time a third of it has passed. When the holder dies, the lease ends by
// itself, and the next waiter gets the lock. A hold ends with its Unlock, or is lost when its lease was not renewed.
//
// A client knows by its own clock until when nobody else can have the lock:
//
//	trust = when the request was sent + lease returned − (1 % of it + 2 ms)
//
// The request is the last acquire or renewal that Redis answered. The lease returned is what was left of the lease
// then. Trust counts from the sending of the request, which was earlier, so trust ends before the lease does in Redis.
// The 1 % is for clocks that run at different rates. Two clocks are asked: the monotonic clock, and one that also
// counts suspended time. Either can end the trust. One failed renewal is no loss: it is tried again until trust ends.
//
//	        Lock                    Unlock
//	(none) ──────────►   held    ──────────►  released
//	                      │
//	                      │ trust has ended, or Redis says that the hold is gone,
//	                      ▼ or ForceUnlock, or Close
//	                     lost    ──────────►  released (Unlock returns ErrLost)
//	                                Unlock
//
// A loss is told in four ways: [Hold.Err] returns [ErrLost], [Hold.Lost] is closed, contexts of [Hold.Context] and of
// [Lock.Do] end with ErrLost as their cause, and Unlock returns ErrLost.
//
// # What no lease can promise
//
//   - A pause stops the code, not the lease. The garbage collector, the scheduler or SIGSTOP can stop code between two
//     statements. It may then run on for a moment after the lease has ended. The remedy is the token.
//   - A server that loses writes loses locks: asynchronous replication at a failover, a restart without persistence,
//     FLUSHALL, eviction. Two holders are possible until the earlier one's next renewal, or until its trust ends. The
//     remedy is the token; [Replicas] makes a loss at a failover rarer.
//   - Clocks that differ in rate by more than 1 % break the trust, and so does a server clock that is set forward. Slew
//     clocks, do not step them.
//   - A lock protects only from code that takes it.
//
// # Tokens
//
// Every grant has a fencing token, larger than those of all earlier grants of the same name ([Hold.Token],
// [Lock.Token]). A resource must remember the largest token that it has seen, and refuse smaller ones: package fence
// does so in SQL databases and in Redis. Then a holder that does not know of its loss cannot damage the resource. Do
// not compare tokens of readers or of a semaphore: several are valid at once. Re-entries share the token of the outer
// hold. Code that runs under a lock gets the token from the hold that [FromContext] returns. If the resource cannot
// compare tokens, the lock makes double work rare, but cannot prevent it.
//
// A token is roughly the time of its grant by Redis' clock, in nanoseconds since 1970. Its last three digits come from
// the owner's name. A float64, as in Lua, loses a part of them. Grants by one server still differ and stay in order.
//
// # Owners
//
//   - Without a name every acquisition is its own owner, as with [sync.Mutex]. Goroutines exclude each other, even
//     through one handle, and a goroutine that locks twice waits for itself.
//   - [WithOwner] names a flow of control, such as one run of a workflow. Nested calls that get its context re-enter
//     what the owner holds, through any handle, goroutine or process. Each success needs its own Unlock.
//   - [Owner] names the owner of all calls of one handle.
//   - [WithNewOwner] gives a nested call an owner of its own. [WithChildOwner] makes branches that exclude each other
//     and enter what their parent holds.
//   - A call returns [ErrDeadlock] at once if it would wait for a live hold of another owner from which its context
//     descends. Do and [Hold.Context] make such contexts.
//
// Goroutines that share an owner do not exclude each other. An owner is what a thread is in Java.
//
// # Kinds of lock
//
// There are five: plain, fair, read/write, fair read/write, and semaphore. A name is of one kind while it is in use,
// and using it as another kind returns [ErrKind].
//
//   - [Client.NewLock] makes a plain lock. Processes get it in the order in which they took their places in the queue;
//     within a process it may be passed on for up to 10 ms.
//   - With [Fair] every waiter has its own place, and the lock is granted in the order in which waiters came to Redis.
//     TryLock does not overtake them. If the next waiter is in the same process, the lock is passed on there.
//   - [Client.NewRWLock] makes a read/write lock: any number of readers, or one owner that writes. Its two sides,
//     [RWLock.RLocker] and [RWLock.WLocker], are Locks with all methods of a Lock. New readers wait behind a writer
//     that waits, so writers are not starved. Fair may be given as well.
//   - [Client.NewSemaphore] makes a lock with a number of permits. Each hold uses one permit, or as many as its
//     [Weight]. Permits are granted in order of request.
//
// # Which call to use
//
//   - [Lock.Do] for a critical section that is a function. It waits for the lock until ctx ends, and releases on every
//     way out. The context of the function ends if the lock is lost.
//   - [Lock.Acquire] and [Hold.Release] for a hold that is passed around. The hold knows its token and whether it is
//     lost.
//   - [Lock.Lock] and [Lock.Unlock] for code that is written for a mutex with a context. The handle keeps the holds.
//   - [Lock.TryLock], [Lock.TryAcquire] and [Lock.TryDo] give up after a time. A wait of zero or less makes one
//     attempt. TryLock and TryDo do not return an error if the lock is taken.
//   - [Client.Once] for a job that every process starts, and that must run once in each interval. [AtLeast] for a name
//     that must stay taken for a while after a short hold.
//   - [Sticky] for a lock that one process takes again and again.
//   - [Hold.Detach] and [Client.Resume] to take a lock in one process and use it in another.
//   - [Lock.NewCond] to wait under a lock until somebody else has changed what the lock protects: Java's conditions,
//     over all processes.
//   - [NewMulti] for several locks at once, [NewQuorum] for one lock on a majority of primaries, [Client.NewElection]
//     for one leader among processes.
//   - [Lock.SyncLocker] for code that needs a [sync.Locker]. It panics on loss.
//   - [Client.Locks], [Lock.Info], [Lock.Waiters] and [Lock.ForceUnlock] for operators, and [Client.Check] for a
//     readiness probe.
//   - [Client.Shutdown] at the end of a process: it waits until all holds are released. [Client.Close] ends them at
//     once.
//
// # What a lock costs
//
// A free lock costs one command, and so does its release, which also gives the lock to the next waiter and tells that
// waiter's client. A waiter costs one command every third of its TTL, and at least every 10 s. Up to 64 waiters of one
// lock and client share that command. A client has one subscription, or with [ShardedPubSub] one for each hash tag that
// it waits for. It has one goroutine for all its timers. Renewals and heartbeats run on goroutines of their own.
//
// Anonymous calls of one process that wait for the same plain lock share one place in Redis' queue. Such a lock may be
// passed on within the process without a command, at most 128 times and for 10 ms. Then the queue gets its turn. A fair
// lock is passed on within a process to calls whose turn is next (see [Fair]). Holds of read/write locks and of
// semaphores are all granted by Redis.
//
// # Further reading
//
//   - docs/guarantees.md: every limit and promise; its pages say what breaks each, and which tests hold it
//   - AGENTS.md: each error, its meaning, and the usual reaction
//   - docs/operations.md: how to run it
//   - docs/protocol.md: what is stored in Redis and sent to it
//   - docs/architecture.md: how the code is laid out
package relock
