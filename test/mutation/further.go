package mutation

// Further are rules that no test is there for by name: the explorer and the model must
// miss them.
var Further = []Rule{
	{"a grant is in the counter", "lua/shared_sessions.lua", "s.block), 'token', text(state.token), 'kind'", "s.block), 'kind'", nil},
	{"a release serves the queue", "lua/release.lua", "finish(unsettled() or budget <= 0 or state.looks ~= ''", "finish(false", nil},
	{"a newcomer stands behind the queue", "lua/acquire.lua", "if state.queued == 0 and fits(request) then", "if fits(request) then", nil},
	{"a writer waits for readers", "lua/shared_settle.lua", "elseif not fits(waiter) then", "elseif waiter.mode ~= 'w' and not fits(waiter) then", nil},
}
