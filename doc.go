// Package relock is a distributed lock on Redis: exclusive, read/write or a semaphore,
// reentrant, waited for in a queue, fair by choice, and renewed while it is held.
// Its contracts are those of Java's java.util.concurrent.locks, where a lock that
// can be lost allows them.
//
//	client, err := relock.New(rdb) // any redis.UniversalClient but Ring
//	lock := client.NewLock("orders/4711")
//	err = lock.Do(ctx, func(ctx context.Context) error {
//		... // nobody else, in any process, is here; ctx ends if the lock is lost
//	})
//
// # A lease, not a possession
//
// Redis grants a lock for a time, its lease ([TTL], 30 s by default). While the
// holder lives and reaches Redis, the client's watchdog renews the lease every
// third of it. When the holder dies, the lease ends by itself, and the next
// waiter gets the lock. So a lock is held until its Unlock or until its lease
// could not be kept, whichever is first. In the second case it is lost.
//
// A client knows by its own clock until when nobody else can have the lock:
//
//	trust = when the request was sent + lease returned − (1 % of it + 2 ms)
//
// The request is the last acquire or renewal that Redis answered, and the lease
// returned is what was left of it when Redis answered. The answer arrives later
// than the request was sent, so trust ends before the lease does in Redis. The
// 1 % is for clocks that run at different rates. Both the monotonic clock and
// one that also counts suspended time are asked; either can end the trust. One
// renewal that fails is no loss: it is tried again until the trust ends.
//
//	        Lock                    Unlock
//	(none) ──────────►   held    ──────────►  released
//	                      │
//	                      │ trust has ended, or Redis says that the hold is gone,
//	                      ▼ or ForceUnlock, or Close
//	                     lost    ──────────►  released (Unlock returns ErrLost)
//	                                Unlock
//
// A loss is told in four ways, all of the same instant: [Hold.Err] returns
// [ErrLost], [Hold.Lost] is closed, contexts of [Hold.Context] and of [Lock.Do]
// end with ErrLost as their cause, and Unlock returns ErrLost.
//
// # What no lease can promise
//
//   - A pause stops the code, not the lease. Code that was stopped between two
//     statements, by the garbage collector, the scheduler, or SIGSTOP, may run on
//     for a moment after the lease has ended. The remedy is the token.
//   - A server that loses writes loses locks: asynchronous replication at a
//     failover, a restart without persistence, FLUSHALL, eviction. Two holders
//     are possible until the earlier one's next renewal. The remedy is the token;
//     [Replicas] makes the first of these rarer.
//   - Clocks that differ in rate by more than 1 % break the trust, and so does a
//     server clock that is set forward. Slew clocks, do not step them.
//   - A lock protects from those who take it, and from nobody else.
//
// # Tokens
//
// Every grant has a fencing token, larger than those of all earlier grants of
// the same name ([Hold.Token], [Lock.Token]). A resource that remembers the
// largest token it has seen, and refuses smaller ones, cannot be damaged by a
// holder that does not know yet that it is none. Re-entries share the token of
// the outer hold. Code that is called under a lock has it by [FromContext]. If
// the resource cannot compare tokens, the lock saves work that would be done
// twice; it does not rule out that it is done twice.
//
// A token is about the instant of its grant by the clock of Redis, in
// nanoseconds of which the last three digits are the owner's. Where it is stored
// as a float64, as by Lua, those are lost in part; grants by one server are in
// order all the same, and differ.
//
// # Owners
//
//   - Without a name every acquisition is its own owner, as with [sync.Mutex].
//     Goroutines exclude each other, also through one handle, and a goroutine
//     that locks twice waits for itself.
//   - [WithOwner] names a flow of control, such as one run of a workflow. Nested
//     calls that get its context re-enter what the owner holds, through any
//     handle, goroutine or process. Each success needs its own Unlock.
//   - [Owner] names the owner of all calls of one handle.
//   - A call whose context descends, through Do or [Hold.Context], from a live
//     hold of the same lock under another owner fails at once with [ErrDeadlock].
//
// Goroutines that share an owner do not exclude each other. An owner is what a
// thread is in Java.
//
// # Fair, read/write, and of many
//
// A lock is of one of five kinds, and a name is of one kind while it has holders
// or waiters: who asks for it as another gets [ErrKind].
//
//   - [Client.NewLock] makes a plain lock. Processes get it in the order in which
//     their places in the queue were taken; within a process it may be passed on
//     for up to 10 ms.
//   - With [Fair] every waiter has its own place, and the lock is granted in the
//     order in which they came to Redis. TryLock does not overtake them. Where the next
//     in that order is of the same process, it is passed on there.
//   - [Client.NewRWLock] makes a read/write lock: any number of readers, or one
//     owner that writes. Its two sides, [RWLock.RLocker] and [RWLock.WLocker], are
//     Locks with all that one has. New readers wait behind a writer that waits, so
//     writers are not starved. Fair may be given as well.
//   - [Client.NewSemaphore] makes a lock that so many may hold at a time, each with one
//     permit or as many as its [Weight], in the order in which they came to Redis.
//
// Of a read/write lock know this:
//
//   - An owner that writes may also read, and become a reader without a gap
//     ([RWLock.Downgrade]). An owner that reads cannot write: [ErrUpgrade].
//   - An owner that reads may read again past writers that wait, since it would
//     wait for itself otherwise. So many flows under one name, whose read holds
//     overlap without end, keep writers out for ever. Name each its own owner.
//   - Anonymous holds exclude each other: Lock, RLock, Unlock without an owner
//     waits for itself at RLock. Where the context descends from the hold, the
//     call fails at once: with ErrDeadlock, also for a read under a live read
//     hold, because a writer that queues between the two would block both; and
//     with ErrUpgrade for a write under a read hold.
//   - Each reader has its own lease, and its loss concerns nobody else.
//
// # Which call when
//
//   - [Lock.Do] for a critical section that is a function. It releases on every
//     way out, and its context ends with the lock.
//   - [Lock.Acquire] and [Hold.Release] where a hold is passed around: the hold
//     knows its token and whether it is lost.
//   - [Lock.Lock] and [Lock.Unlock] for code that is written for a mutex with a
//     context. The handle keeps the holds.
//   - [Lock.TryLock], [Lock.TryAcquire] and [Lock.TryDo] give up after a time; a
//     wait of zero or less makes one attempt. "Taken" is no error to TryLock
//     and TryDo.
//   - [Client.Once] for a job that many processes start at about the same time, and
//     that is to run once in each interval; [AtLeast] for a name that is to stay taken
//     for a while after a short hold.
//   - [Hold.Detach] and [Client.Resume] to take a lock in one process and to go on under
//     it in another.
//   - [Lock.NewCond] to wait under a lock until somebody else has changed what it
//     protects: conditions as Java's, over all processes.
//   - [NewMulti] for several locks at once, [NewQuorum] for one on a majority of
//     primaries, [Client.NewElection] for one leader among processes.
//   - [Lock.SyncLocker] for code that knows [sync.Locker] only. It panics on loss.
//   - [Lock.Info], [Lock.Waiters] and [Lock.ForceUnlock] for operators.
//
// # What a lock costs
//
// A free lock costs one command, and so does its release, which also gives the
// lock to the next waiter and tells its client. A waiter costs one command each
// third of its TTL, and each 10 s where that is longer, up to 64 waiters of one
// lock and client together. A client has one subscription (with [ShardedPubSub] one
// for each hash tag that it waits for) and one goroutine for its timers, whatever the
// number of its locks; renewals and heartbeats run on goroutines of their own. Anonymous
// calls of one process that wait for the same plain lock stand in Redis' queue as
// one: such a lock may be passed on within the process, without any command, at most 128
// times and for 10 ms before the queue gets its turn. A fair one is passed on so to calls
// whose turn is next, see [Fair]; holds of read/write locks and of semaphores are all
// granted by Redis.
//
// # Further reading
//
// docs/guarantees.md has every promise with what breaks it and the test that
// shows it, docs/protocol.md what is stored in Redis and said on the wire,
// docs/operations.md how to run it, docs/architecture.md how the code is laid out.
package relock
