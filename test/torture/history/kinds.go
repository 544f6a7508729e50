package history

// More that can happen.
const (
	// Start is the rig's first event: Until is when the run is to end, By its seed.
	Start What = "start"
	// Queued is a call's Waiting hook, noted when it is called: with the inbox up,
	// its entry is in the queue by then.
	Queued What = "queued"
	// Await is a call of its own: the hold of call By is given up, to wait on the condition
	// On until Until, and hold again. Acquired says by Err whether its time has passed.
	Await What = "await"
	// Signal is the hold's: one for the condition On, from T to Until, if Err is "".
	Signal What = "signal"
	// Downgrade is noted before the call: from then on the hold counts as a read
	// hold, as it is that at least.
	Downgrade What = "downgrade"
	// Swept is one inspection after the end: On names what was inspected (worker 3,
	// server 0), Fault is one of the Left kinds, By how many were left behind.
	Swept What = "swept"
	// Kept is the rig's: a lock had a holder, the same for all that time, from T
	// until Until. Owner and Token are that holder's.
	Kept What = "kept"
	// Script is a script that took long, By ns, less what the machine kept its
	// server from running; it ran between T and Until.
	Script What = "script"
	// Ping is one of another client that was answered late, or with By a count of all.
	Ping What = "ping"
)

// Nobody is whose events those of a ticket are: a call, from the detaching of a hold on, of
// what nobody has until a call with By resumes it. Its number is that of no other.
const Nobody = -2

// Together is what a Call is On that asks for its lock together with others: it may hold
// some while it waits for the next, and has none before it has all.
const Together = "together"

// What a Swept event counts.
const (
	LeftKey        = "key"        // in Redis, longer than its time to live allows, or without one
	LeftGoroutine  = "goroutine"  // in a worker whose client is closed
	LeftConnection = "connection" // on a server, or a subscription, after all clients are closed
)

// Kinds of faults. On names what one befell: "worker 3", "link 3" (that of
// worker 3), or a deployment, as "sentinel", with all its servers. A lock's
// name begins with its deployment and a slash. A fault that has Lock befell that
// lock alone. T is taken before the fault is injected, Until after it is healed.
const (
	KillWorker   = "kill worker"
	StopWorker   = "stop worker"
	Cut          = "cut"       // connections are closed, new ones refused
	HalfOpen     = "half-open" // connections stay, and nothing passes
	Slow         = "slow"
	Swallow      = "swallow" // replies get lost, then the connection
	Delay        = "delay"   // requests arrive late
	ClientKill   = "client kill"
	ScriptFlush  = "script flush"
	FlushAll     = "flushall"
	KillServer   = "kill server"   // and started again with its data
	RestartEmpty = "restart empty" // killed, and started again without
	StopServer   = "stop server"
	Failover     = "failover"
	Migrate      = "migrate" // of the lock's slot
	ClockForward = "clock forward"
	ClockBack    = "clock back" // By: by how much, in ns; the return from a step forward is one
	Maxmemory    = "maxmemory"
	ForceUnlock  = "force unlock"
	NoSubscribe  = "no subscription"  // connections that subscribe are closed, others pass
	DeadPool     = "dead connections" // those that are open fall silent, new ones work
)
