package house_test

// figures are the constants that users, operators and readers of the protocol are told.
var figures = []figure{
	{
		what: "for how many holds a grant is kept", file: "internal/room/kept.go", source: `stickyTokens = (.+)`,
		says: []string{`is kept for # holds at most`},
	},
	{
		what: "how often a page of the dashboard renews itself", file: "relockweb/handler.go", source: `defaultEvery = (.+)`,
		says: []string{`page renews itself: @ by default`},
	},
	{
		what: "how many locks the dashboard reads", file: "relockweb/listing.go", source: `mostLocks = (.+)`,
		says: []string{`The list has # locks at most`, `A list has at most # locks`},
	},
	{
		what: "how many locks a page of the dashboard shows", file: "relockweb/page.go", source: `mostRows = (.+)`,
		says: []string{`locks, and a page #`},
	},
	{
		what: "how many holders and waiters the page of a lock shows", file: "relockweb/listing.go", source: `mostOf += (.+)`,
		says: []string{`has at most # holders`, `holders and # waiters`},
	},
	{
		what: "how late a waiter in Redisson's layout notices an unlock that it does not hear of", file: "redisson/waiting.go", source: `const pulse = (.+)`,
		says: []string{`waiters notice them up to @ late`},
	},
	{
		what: "how long one try of a call that reads may take", file: "inspect.go", source: `inspectTimeout = (.+)`,
		says: []string{`tried three times, for up to @ each`, `asked up to three times, for up to @ each`},
	},
	{
		what: "how long an assertion of relocktest waits", file: "relocktest/assert.go", source: `patience = (.+)`,
		says: []string{`Outside of a bubble it waits for that for up to @`},
	},
	{
		what: "how many holds an owner has in Redisson's layout", file: "redisson/session.go", source: `mostHolds = (.+)`,
		says: []string{`has at most # holds at a time`, `an owner has # at most of one lock`},
	},
	{
		what: "the number of holds passed on", file: "internal/room/room.go", source: `maxPasses += (.+)`,
		says: []string{`pass(?:ed)?\b[^.|]{0,120}? # times`, `local passing, # times`, `terms, number \(#\)`},
	},
	{
		what: "the number of owners that tokens tell apart", file: "internal/wire/token.go", source: `unit, owners = 1000, (.+)`,
		says: []string{`decimal digits behind it, of #:`, `but for one (?:such )?pair\s+in #`, `differ, except for one pair in #`, `modulo #`},
	},
	{
		what: "the largest digits of an owner", file: "internal/wire/token.go", source: `unit, owners = 1000, (.+)`, add: -1,
		says: []string{`[Dd]igits up to #`},
	},
	{
		what: "the largest block of tokens", file: "internal/room/room.go", source: `maxPasses += (.+)`, add: 1,
		says: []string{`up to # where it may be passed on`},
	},
	{
		what: "how many a run has besides the first", file: "internal/room/line.go", source: `maxRun = (.+)`,
		says: []string{`for at most # calls in a row`, `up to #: .grant NONCE`, `of a run, # calls at most`, `writing, # at most: a .run`},
	},
	{
		what: "how many of a run scripts name", file: "lua/shared_run.lua", source: `longest_run = (.+)`,
		says: []string{`up to #: .grant NONCE`},
	},
	{
		what: "the block of tokens of a fair lock", file: "internal/room/line.go", source: `maxRun = (.+)`, add: 1,
		says: []string{`within the process, # of a fair lock`, `which is # of a fair lock`, `grant's block \(# are asked for\)`},
	},
	{
		what: "the time for which a lock is passed on", file: "internal/room/room.go", source: `maxPassTime = (.+)`,
		says: []string{`pass(?:ed|ing)?\b[^.|]{0,140}? for (?:up to )?@`, `number \(\d+\), time \(@\)`},
	},
	{
		what: "the default TTL", file: "options.go", source: `defaultTTL += (.+)`,
		says: []string{`its lease \(\[TTL\], @ by default`, `[Tt]he lease is @ unless`, `process dies\. The default is @`},
	},
	{
		what: "the shortest TTL", file: "options.go", source: `minTTL += (.+)`,
		says: []string{`the bounds are @ and \S+ \S+\. The watchdog`, `one try is a third of the TTL, from @ to`},
	},
	{
		what: "the longest TTL", file: "options.go", source: `maxTTL += (.+)`,
		says: []string{`the bounds are \S+ \S+ and @\. The watchdog`},
	},
	{
		what: "the default ReleaseTimeout", file: "options.go", source: `defaultReleaseTimeout = (.+)`,
		says: []string{`returns ErrUnconfirmed\. The default is @`},
	},
	{
		what: "the default TokenKeep", file: "options.go", source: `defaultTokenKeep += (.+)`,
		says: []string{`plus .TokenKeep. \(@ by default`, `the default of @`, `its lease ended\. The default is @`},
	},
	{
		what: "the time that a request counts", file: "internal/room/entry.go", source: `LateAfter = (.+)`,
		says: []string{`not-after \(@ after sending`},
	},
	{
		what: "the steps of one script", file: "lua/shared_state.lua", source: `local budget = (\d+)`,
		says: []string{`at most # such steps`, `the # steps to which a script is`, `One call ends # sessions`},
	},
	{
		what: "the holders told by one script that others wait", file: "lua/shared_queue.lua", source: `most_wanted = (\d+)`,
		says: []string{`session that holds, # at most`, `joins the queue, to # holders at most`},
	},
	{
		what: "the readers let in by one script", file: "lua/shared_settle.lua", source: `local admit = (\d+)`,
		says: []string{`call lets in # readers`},
	},
	{
		what: "the locks renewed by one command", file: "watchdog.go", source: `maxTogether = (\d+)`,
		says: []string{`of up to # locks on one server`, `renews up to # locks of a server`},
	},
	{
		what: "how many are renewed together at least", file: "watchdog.go", source: `minTogether = (\d+)`,
		says: []string{`fewer than # that are due together`},
	},
	{
		what: "the waiters of one heartbeat", file: "watchdog.go", source: `maxPolled += (\d+)`,
		says: []string{`one heartbeat for up to # of`, `[Uu]p to # waiters`},
	},
	{
		what: "the rate in the margin", file: "internal/trust/trust.go", source: `return lease/(.+?) \+`, share: true,
		says: []string{`\(# % (?:of it |of ttl )?\+ \d+ ms\)`, `(?:rates [^.|]{0,40}?within|rates [^.|]{0,40}?more than) # %`, `The margin of # %`, `The # % is for clocks`},
	},
	{
		what: "the rest of the margin", file: "internal/trust/trust.go", source: `return lease/\d+ \+ (.+) }`,
		says: []string{`\(\d % (?:of it |of ttl )?\+ @\)`, `% of the lease and @ is for`},
	},
	{
		what: "the time for an echo", file: "internal/listener/listeners.go", source: `echoGrace = (.+)`,
		says: []string{`without it within @ the inbox connects again`},
	},
	{
		what: "how much later the others look", file: "internal/room/entry.go", source: `followDelay = (.+)`,
		says: []string{`\(\+ @ if not the head\)`},
	},
	{
		what: "the longest time between heartbeats", file: "internal/trust/trust.go", source: `longestPulse = (.+)`,
		says: []string{`min\(ttl/3, @\)`, `a third of the TTL(?: apart,)? and @ at most`, `by heartbeat, up to @ late`},
	},
	{
		what: "the longest wait for one answer", file: "internal/trust/trust.go", source: `\tlongest\s+= (.+)`,
		says: []string{`one try is a third of the TTL, from \S+ \S+ to @`},
	},
	{
		what: "how often servers are asked whether they still serve", file: "internal/replay/journal.go", source: `watchEvery = (.+)`,
		says: []string{`asks?[^.|]{0,80}? every @ (?:while it remembers|who serves)`},
	},
	{
		what: "the releases that are remembered", file: "internal/replay/journal.go", source: `remembered = (.+)`,
		says: []string{`at most # of them, with the server`, `Up to # pipelined commands`},
	},
	{
		what: "a page of waiters", file: "inspect.go", source: `waitersPage = (.+)`,
		says: []string{`a page of at most #`},
	},
	{
		what: "how long Close waits for the handler of the log", file: "locker.go", source: `logGrace = (.+)`,
		says: []string{`Close waits (?:for them )?for @\s+at most`},
	},
	{
		what: "how long Close leaves queues", file: "locker.go", source: `closeGrace = (.+)`,
		says: []string{`.Close. waits up to @`, `[Ff]or at most @ Close`},
	},
	{
		what: "how long the schedule's goroutine stays", file: "internal/renewal/schedule.go", source: `const tick = (.+)`,
		says: []string{`@ after the last deadline`},
	},
	{
		what: "how long a sharded channel lingers", file: "internal/listener/listeners.go", source: `shardLinger = (.+)`,
		says: []string{`@ after the last, or at .Close.`, `end @ after the last wait`},
	},
	{
		what: "the longest name", file: "internal/key/check.go", source: `maxName += (.+)`,
		says: []string{`[Aa] name(?: has|:| is) 1 to # bytes`},
	},
	{
		what: "the longest prefix", file: "internal/key/check.go", source: `maxPrefix = (.+)`,
		says: []string{`and a colon\. A prefix has 1 to # bytes`},
	},
	{
		what: "the longest label", file: "internal/key/check.go", source: `maxLabel  = (.+)`,
		says: []string{`[Aa] label is 1 to # bytes`, `"web-1:4711"\. It has 1 to # bytes`},
	},
	{
		what: "how often a label is stored", file: "internal/label/label.go", source: `every += (.+)`,
		says: []string{`stored again every @`},
	},
	{
		what: "how long labels are waited for", file: "internal/label/label.go", source: `readWithin = (.+)`,
		says: []string{`does not answer within @\.`, `not read within @, is`},
	},
	{
		what: "how long the first call waits for its label", file: "internal/label/label.go", source: `firstWithin = (.+)`,
		says: []string{`waits @ for that at most`},
	},
	{
		what: "how long a call asks who holds", file: "pubsub_wait.go", source: `whoWithin = (.+)`,
		says: []string{`takes a round trip, and at most @`},
	},
	{
		what: "the longest owner", file: "context.go", source: `maxOwner = (\d+)`,
		says: []string{`id has 1 to # bytes`},
	},
	{
		what: "the most replicas", file: "options.go", source: `maxReplicas = (.+)`,
		says: []string{`n is 1 to #\.`},
	},
	{
		what: "the longest time for replicas", file: "options.go", source: `maxAckTime += (.+)`,
		says: []string{`timeout is 1 ms to @,`},
	},
	{
		what: "how often the clock that counts suspensions is read", file: "internal/clock/clock.go", source: `validFor = (.+)`,
		says: []string{`CLOCK_BOOTTIME[^|]{0,200}? every @`},
	},
	{
		what: "the lines of a function", file: "test/house/lengths_test.go", source: `longestFunction = (.+)`,
		says: []string{`functions at most #`},
	},
	{
		what: "the lines of a file", file: "test/house/lengths_test.go", source: `longestFile     = (.+)`,
		says: []string{`Files have at most # lines`},
	},
}
