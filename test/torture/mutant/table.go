package mutant

import (
	"slices"

	"github.com/relock-go/relock/test/torture/check"
	"github.com/relock-go/relock/test/torture/history"
	"github.com/relock-go/relock/test/torture/server"
)

// faults of clients and links: none of them excuses two holders.
var apart = []string{
	history.KillWorker, history.StopWorker, history.Cut, history.HalfOpen, history.Swallow, history.Delay, history.ClientKill,
}

var (
	exclusive = map[string]int{"plain": 4, "fair": 4, "storm": 2, "long": 3}
	named     = map[string]int{"reentrant": 6, "storm": 1}
	fair      = map[string]int{"fair": 6, "long": 4}
	rw        = map[string]int{"rw": 8, "long": 4}
	buffers   = map[string]int{"buffer": 6}
	permits   = map[string]int{"permits": 8}

	overlap = []check.Name{check.LeaseOverlap, check.TokenRepeated, check.HolderRefused, check.NoOrder}
	signals = []check.Name{check.LostSignal}
	stuck   = []check.Name{check.LostWakeup, check.Leaked, check.NoOrder}
)

// All are the mutants. A text that the scripts do not have any more is an error
// of the table: find the rule's new place.
var All = []Mutant{
	{
		Name: "an unlock ends whoever holds",
		Edits: []Edit{
			{"lua/release.lua", "local alone = fields[1] == ARGV[1] and", "local alone = fields[1] and"},
			{"lua/shared_sessions.lua", "s.nonce == nonce and s.client == client and (owner == '' or s.owner == owner)", "true"},
		},
		Loads: exclusive, Want: overlap,
	},
	{
		Name: "an unlock ends another hold of its owner",
		Edits: []Edit{
			{"lua/shared_sessions.lua", "s.nonce == nonce and s.client == client and (owner == '' or s.owner == owner)", "s.owner == (owner == '' and s.owner or owner)"},
		},
		Loads: named, Kinds: apart, Want: append(slices.Clone(overlap), check.ReentryToken),
	},
	{
		Name: "a grant does not look whether the lock is held",
		Edits: []Edit{
			{"lua/acquire.lua", "if state.queued == 0 and fits(request) then", "if state.queued == 0 and (request.mode == 'w' or fits(request)) then"},
			{"lua/acquire.lua", "local queued = KEYS[2] and tonumber(fields[2] or 0)", "local queued = false"},
		},
		Loads: exclusive, Want: overlap,
	},
	{
		Name: "a dead holder's lease never ends",
		Edits: []Edit{
			{"lua/shared_sessions.lua", "  if alone and alone.deadline > now then\n    return alone.deadline", "  if alone then\n    return alone.deadline"},
			{"lua/shared_settle.lua", "if state.alone and state.alone.deadline <= now then", "if false then"},
			{"lua/acquire.lua", "if state.alone and state.alone.deadline <= now then", "if false then"},
		},
		Loads: exclusive, Kinds: []string{history.KillWorker}, Want: stuck,
	},
	{
		Name: "a lease ends early",
		Edits: []Edit{
			{"lua/shared_sessions.lua", "  if alone and alone.deadline > now then\n    return alone.deadline", "  if alone and alone.deadline - 200 > now then\n    return alone.deadline"},
			{"lua/shared_settle.lua", "state.alone.deadline <= now", "state.alone.deadline - 200 <= now"},
			{"lua/acquire.lua", "state.alone.deadline <= now", "state.alone.deadline - 200 <= now"},
		},
		Loads: map[string]int{"long": 8}, Want: overlap,
	},
	{
		Name:  "a hold is trusted for longer than its lease",
		Edits: []Edit{{"internal/trust/trust.go", "{ return lease/100 + 2*time.Millisecond }", "{ return -lease }"}},
		Loads: map[string]int{"long": 8}, Kinds: []string{history.Cut, history.HalfOpen}, Want: overlap,
	},
	{
		Name: "a poll passes the queue",
		Edits: []Edit{
			{"lua/acquire.lua", "if not writer() and state.queued > 0 and request.asks_place <= 0 then", "if false then"},
			{"lua/acquire.lua", "if state.queued == 0 and fits(request) then", "if fits(request) then"},
		},
		Loads: fair, Kinds: []string{history.KillWorker}, Want: []check.Name{check.Overtaken},
	},
	{
		Name:  "the queue is served from its tail",
		Edits: []Edit{{"lua/shared_queue.lua", "('ZRANGEBYSCORE', KEYS[2], '(0', '+inf', 'LIMIT', 0, 2)", "('ZREVRANGEBYSCORE', KEYS[2], '+inf', '(0', 'LIMIT', 0, 2)"}},
		Loads: fair, Want: []check.Name{check.Overtaken},
	},
	{
		Name: "the lock is handed to two",
		Edits: []Edit{
			{"lua/release.lua", "if queued and grant_to_usual_next(queued) then", "if false then"},
			{"lua/shared_settle.lua", "  while not writer() and state.queued > 0 do", "  local given = 0\n  while (not writer() or given == 1) and state.queued > 0 do\n    given = given + 1"},
			{"lua/shared_settle.lua", "elseif not fits(waiter) then", "elseif false then"},
		},
		Loads: exclusive, Want: overlap,
	},
	{
		Name: "tokens do not go on from the counter",
		Edits: []Edit{
			{"lua/shared_clock.lua", "math.max(last, high - size) + 1", "high - size + 1"},
		},
		Loads: exclusive, Kinds: []string{history.ClockBack, history.ClockForward},
		Want: []check.Name{check.TokenFell, check.TokenRepeated, check.HolderRefused},
	},
	{
		Name: "the counter goes with its holder",
		Edits: []Edit{
			{"lua/release.lua", "'HDEL', KEYS[1], 'holder', 'until', ARGV[2])", "'HDEL', KEYS[1], 'holder', 'until', 'token', ARGV[2])"},
		},
		Loads: exclusive, Kinds: []string{history.ClockBack, history.ClockForward},
		Want: []check.Name{check.TokenFell, check.TokenRepeated, check.HolderRefused},
	},
	{
		Name: "a late copy of a request that was given up is granted",
		Edits: []Edit{
			{"lua/acquire.lua", "if left > 0 and left <= 60000000 then", "if true then"},
			{"lua/acquire.lua", "\n  and not_after > micros and not_after <= micros + 60000000 then", " then"},
			{"lua/acquire.lua", "if not_after <= micros or not_after > micros + 60000000 then", "if false then"},
			{"lua/release.lua", "if until_ms > now then", "if false then"},
		},
		Loads: map[string]int{"storm": 3, "fair": 4, "plain": 2}, Kinds: []string{history.Delay}, Want: []check.Name{check.Leaked}, Inspect: true,
	},
	{
		Name: "readers are let in beside a writer",
		Edits: []Edit{
			{"lua/shared_settle.lua", "request.mode == 'r' and writer or blocked", "request.mode == 'r' and function() end or blocked"},
		},
		Loads: rw, Want: overlap,
	},
	{
		Name: "a writer is let in beside readers",
		Edits: []Edit{
			{"lua/shared_sessions.lua", "  if alone and alone.deadline > now then\n    return alone.deadline", "  if alone and alone.writes > 0 and alone.deadline > now then\n    return alone.deadline"},
			{"lua/shared_sessions.lua", "  local _, deadline = longest()\n  return deadline", "  return nil"},
		},
		Loads: rw, Want: overlap,
	},
	{
		Name: "a hash has no time to live",
		Edits: []Edit{
			{"lua/acquire.lua", "  redis.call('PEXPIRE', KEYS[1], longest_ttl + keep)\n", ""},
			{"lua/acquire.lua", "redis.call('PEXPIRE', KEYS[1], ARGV[8])", "redis.call('PERSIST', KEYS[1])"},
			{"lua/release.lua", "redis.call('PEXPIRE', KEYS[1], ARGV[5] + math.max(ahead, 0))", "redis.call('PERSIST', KEYS[1])"},
			{"lua/shared_settle.lua", "redis.call('PEXPIRE', KEYS[1], math.max(life(0, state.keep), ended))", "redis.call('PERSIST', KEYS[1])"},
		},
		Loads: exclusive, Want: []check.Name{check.Leaked},
	},
	{
		Name:  "who cannot subscribe asks no more",
		Edits: []Edit{{"pubsub_wait.go", "context.WithTimeout(w.ctx, limit)", "context.WithTimeout(w.ctx, limit+time.Hour)"}},
		Loads: map[string]int{"pair": 3}, Kinds: []string{history.NoSubscribe}, Want: []check.Name{check.LostWakeup},
	},
	{
		Name: "a hold waits behind a lost one of its handle",
		Edits: []Edit{{
			"reentrant.go", "	if bar != room.NoBar {\n		return l.barred(bar, by)\n	}\n	used = !w.pending\n",
			"	for bar == room.Occupied {\n		at = k.look()\n		freed := l.holds.WhenFreed(make(chan struct{})).(chan struct{})\n		bar, by = h.hold.Put(want, &at)\n		k.end(&at)\n		if bar == room.Occupied {\n			<-freed\n		}\n	}\n	if bar != room.NoBar {\n		return l.barred(bar, by)\n	}\n	used = !w.pending\n",
		}},
		Loads: map[string]int{"shared": 4}, Want: []check.Name{check.KeptForNobody, check.ReturnedLost},
	},
	{
		Name:  "a hook that does not return keeps the hold",
		Edits: []Edit{{"reentrant.go", "		if !kept {\n", "		if !kept && err != nil {\n"}},
		Loads: map[string]int{"upset": 4}, Want: []check.Name{check.KeptForNobody},
	},
	{
		Name: "each of an owner's calls is told, and counts for itself",
		Edits: []Edit{
			{
				"internal/room/room.go", "case w.Owner == \"\" && !r.Plain, w.Once && (w.Owner != \"\" || r.claimed):",
				"case w.Owner != \"\" || !r.Plain || w.Once && r.claimed:",
			},
			{"lua/shared_settle.lua", "    budget = budget - 1\n    from = after", "    from = after"},
		},
		Loads: map[string]int{"crowd": 3}, Want: []check.Name{check.SlowScript, check.SlowServer},
	},
	{
		Name:  "a semaphore counts holds, not what they weigh",
		Edits: []Edit{{"lua/shared_settle.lua", "return used() + request.weight <= request.permits", "return used() < request.permits"}},
		Loads: permits, Want: overlap,
	},
	{
		Name:  "who wants few permits passes who wants many",
		Edits: []Edit{{"lua/acquire.lua", "if state.queued == 0 and fits(request) then", "if (state.queued == 0 or request.mode == 's') and fits(request) then"}},
		Loads: permits, Want: []check.Name{check.Overtaken},
	},
	{
		Name:  "a signal to the dead is nobody's",
		Edits: []Edit{{"lua/shared_sessions.lua", "if state.conds and redis.call('HGET', KEYS[1], 'i:' .. nonce) then", "if false then"}},
		Loads: buffers, Kinds: []string{history.KillWorker}, Want: signals,
	},
	{
		Name:  "half of the signals wake nobody",
		Edits: []Edit{{"lua/signal.lua", "last = signal(ARGV[3], 0)", "last = micros % 2 > 0 and signal(ARGV[3], 0)"}},
		Loads: buffers, Want: signals,
	},
	{
		Name:  "a ticket is still one when it has been resumed",
		Edits: []Edit{{"lua/resume.lua", "if session.nonce == ARGV[1] then", "if false then"}},
		Loads: map[string]int{"handed": 6}, Want: []check.Name{check.TicketBroken},
	},
	{
		Name:  "a ticket has nothing until it is resumed",
		Edits: []Edit{{"lua/detach.lua", "0, now + ttl)", "0, now)"}},
		Loads: map[string]int{"handed": 6}, Want: overlap,
	},
	{
		Name:  "a name does not rest",
		Edits: []Edit{{"lua/shared_sessions.lua", "  if request.rest then", "  if false then"}},
		Loads: map[string]int{"once": 4}, Want: []check.Name{check.TickTwice},
	},
	{
		Name:  "a name rests for three intervals",
		Edits: []Edit{{"lua/shared_sessions.lua", "state.rests, state.rester = since + request.rest,", "state.rests, state.rester = since + 3 * request.rest,"}},
		Loads: map[string]int{"once": 4}, Want: []check.Name{check.TickMissed},
	},
	{
		Name:  "several locks are taken in the order in which they were named",
		Edits: []Edit{{"multi.go", "return cmp.Compare(a.hash, b.hash)", "return 0 * cmp.Compare(a.hash, b.hash)"}},
		Loads: map[string]int{"several": 4}, Want: []check.Name{check.Circle},
	},
	{
		Name:  "the clock of one server is taken for all",
		Edits: []Edit{{"keeper.go", "time.Now().UnixMilli() + k.skew.Load()", "time.Now().UnixMilli() + k.c.latestSkew.Load()"}},
		Loads: map[string]int{"long": 6, "plain": 6}, Form: server.Skewed, Want: []check.Name{check.Overtaken, check.LostWakeup},
	},
}
