package mutant

import (
	"slices"

	"github.com/relock-go/relock/torture/check"
	"github.com/relock-go/relock/torture/history"
	"github.com/relock-go/relock/torture/server"
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

	overlap = []check.Name{check.LeaseOverlap, check.TokenRepeated, check.HolderRefused, check.NoOrder}
	stuck   = []check.Name{check.LostWakeup, check.Leaked, check.NoOrder}
)

// All are the mutants. A text that the scripts do not have any more is an error
// of the table: find the rule's new place.
var All = []Mutant{
	{
		Name: "an unlock ends whoever holds",
		Edits: []Edit{
			{"lua/release.lua", "if owner == '' and state.owner then", "if state.owner then"},
			{"lua/shared_state.lua", "  local before = ' ' .. client .. ' '\n", "  client, nonce = string.match(grant.sessions, '^ (%S+) (%S+)')\n  if not client then return end\n  local before = ' ' .. client .. ' '\n"},
		},
		Loads: exclusive, Want: overlap,
	},
	{
		Name:  "an unlock ends another hold of its owner",
		Edits: []Edit{{"lua/shared_state.lua", "  local before = ' ' .. client .. ' '\n", "  client, nonce = string.match(grant.sessions, '^ (%S+) (%S+)')\n  if not client then return end\n  local before = ' ' .. client .. ' '\n"}},
		Loads: named, Kinds: apart, Want: append(slices.Clone(overlap), check.ReentryToken),
	},
	{
		Name:  "a grant does not look whether the lock is held",
		Edits: []Edit{{"lua/acquire.lua", "or request.mode == 'w' and blocked()) then", "or false) then"}},
		Loads: exclusive, Want: overlap,
	},
	{
		Name: "a dead holder's lease never ends",
		Edits: []Edit{
			{"lua/shared_state.lua", "return state.owner ~= nil and state.deadline > now", "return state.owner ~= nil"},
			{"lua/shared_settle.lua", "if state.owner and state.deadline <= now then", "if false then"},
		},
		Loads: exclusive, Kinds: []string{history.KillWorker}, Want: stuck,
	},
	{
		Name:  "a lease ends early",
		Edits: []Edit{{"lua/shared_state.lua", "return state.owner ~= nil and state.deadline > now", "return state.owner ~= nil and state.deadline - 200 > now"}},
		Loads: map[string]int{"long": 8}, Want: overlap,
	},
	{
		Name:  "a hold is trusted for longer than its lease",
		Edits: []Edit{{"session.go", "{ return lease/100 + 2*time.Millisecond }", "{ return -lease }"}},
		Loads: map[string]int{"long": 8}, Kinds: []string{history.Cut, history.HalfOpen}, Want: overlap,
	},
	{
		Name: "a poll passes the queue",
		Edits: []Edit{
			{"lua/acquire.lua", "if not state.owner and state.queued > 0 and request.place <= 0 then", "if false then"},
			{"lua/acquire.lua", "if state.queued == 0 and not (", "if not ("},
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
			{"lua/shared_settle.lua", "  while not state.owner and state.queued > 0 do", "  local given = 0\n  while (not state.owner or given == 1) and state.queued > 0 do\n    given = given + 1"},
			{"lua/shared_settle.lua", "elseif waiter.mode == 'w' and blocked() then", "elseif false then"},
		},
		Loads: exclusive, Want: overlap,
	},
	{
		Name: "tokens do not go on from the counter",
		Edits: []Edit{
			{"lua/shared_read.lua", "math.max(last, high - size) + 1", "high - size + 1"},
		},
		Loads: exclusive, Kinds: []string{history.ClockBack, history.ClockForward},
		Want: []check.Name{check.TokenFell, check.TokenRepeated, check.HolderRefused},
	},
	{
		Name:  "the token is not stored",
		Edits: []Edit{{"lua/acquire.lua", "'token', text(state.token), ", ""}, {"lua/shared_settle.lua", ", 'token', text(state.token))", ")"}},
		Loads: exclusive, Kinds: []string{history.ClockBack, history.ClockForward},
		Want: []check.Name{check.TokenFell, check.TokenRepeated, check.HolderRefused},
	},
	{
		Name: "a late copy of a request that was given up is granted",
		Edits: []Edit{
			{"lua/acquire.lua", "if not_after <= now or not_after > now + 60000 then", "if false then"},
			{"lua/release.lua", "if until_ms > now then", "if false then"},
		},
		Loads: map[string]int{"storm": 3, "fair": 4, "plain": 2}, Kinds: []string{history.Delay}, Want: []check.Name{check.Leaked}, Inspect: true,
	},
	{
		Name:  "readers are let in beside a writer",
		Edits: []Edit{{"lua/acquire.lua", "request.mode == 'r' and state.owner or", "false or"}},
		Loads: rw, Want: overlap,
	},
	{
		Name:  "a writer is let in beside readers",
		Edits: []Edit{{"lua/shared_readers.lua", "return state.shared and readers_until() or nil", "return nil"}},
		Loads: rw, Want: overlap,
	},
	{
		Name:  "a hash has no time to live",
		Edits: []Edit{{"lua/shared_state.lua", "  if state.fresh then", "  if false then"}, {"lua/release.lua", "redis.call('PEXPIRE', KEYS[1]", "redis.call('PTTL', KEYS[1]"}},
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
			"obtain.go", "		case freed != nil:\n			return errOccupied\n",
			"		case freed != nil:\n			for freed != nil {\n				<-freed\n				freed, err = l.attach(w, h)\n			}\n			return err\n",
		}},
		Loads: map[string]int{"shared": 4}, Want: []check.Name{check.KeptForNobody, check.ReturnedLost},
	},
	{
		Name:  "a hook that does not return keeps the hold",
		Edits: []Edit{{"obtain.go", "		if !kept {\n", "		if !kept && err != nil {\n"}},
		Loads: map[string]int{"upset": 4}, Want: []check.Name{check.KeptForNobody},
	},
	{
		Name: "each of an owner's calls is told, and counts for itself",
		Edits: []Edit{
			{"pubsub_wait.go", "if w.owner != \"\" && !w.once {", "if false {"},
			{"lua/shared_settle.lua", "    budget = budget - 1\n    from = after", "    from = after"},
		},
		Loads: map[string]int{"crowd": 3}, Want: []check.Name{check.SlowScript, check.SlowServer},
	},
	{
		Name:  "the clock of one server is taken for all",
		Edits: []Edit{{"locker.go", "time.Now().UnixMilli() + r.skew.Load()", "time.Now().UnixMilli() + r.c.skew.Load()"}},
		Loads: map[string]int{"long": 6, "plain": 6}, Form: server.Skewed, Want: []check.Name{check.Overtaken, check.LostWakeup},
	},
}
