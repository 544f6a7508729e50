package mutation

// unseenRules are those of servers that do not see who is subscribed.
var unseenRules = []Rule{
	{
		"a client that is not seen vouches for its subscription", "internal/listener Listeners.Echo",
		"case sight == wire.Unseen && l.Up():", "case false:",
		[]string{"TestFairLockIsGrantedInOrderBehindAProxy", "TestF14WaitersThatNobodyCountsHoldInTheirOrder", "TestSignalsWakeInOrderWhereNobodyIsCounted"},
	},
	{
		"an echo that says nothing of it is no sight", "internal/listener Listeners.Echoed",
		"return false", "sight = wire.Seen",
		[]string{"TestAnEchoOfPermissionsSaysNothingOfWhoIsCounted"},
	},
	{
		"the first who hears that it is not seen asks again", ". Client.deliver",
		"c.rouse(func(*acquisition) bool { return true }, false)", "",
		[]string{"TestF14WaitersThatNobodyCountsHoldInTheirOrder"}, // on a real server its first request may come after the echo
	},
	{
		"a client vouches anew for each connection", "internal/listener Listeners.relinked",
		"ls.sight.Store(int32(wire.Unknown))", "",
		[]string{"TestWaitersThatConnectToAServerThatCountsNobodyHoldInTheirOrder"},
	},
	{
		"where a subscriber is not seen, everybody counts as one that hears", "lua/shared_settle.lua",
		"tonumber(redis.call('HGET', KEYS[1], 'unseen') or 0) <= now then", "true then",
		[]string{"TestFairLockIsGrantedInOrderBehindAProxy", "TestF14WaitersThatNobodyCountsHoldInTheirOrder", "TestScriptsDoWhatTheModelSays"},
	},
	{
		"what is noted of subscribers ends", "lua/shared_settle.lua",
		"tonumber(redis.call('HGET', KEYS[1], 'unseen') or 0) <= now then", "tonumber(redis.call('HGET', KEYS[1], 'unseen') or 0) == 0 then",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"what is noted of subscribers is not cut short", "lua/shared_queue.lua",
		"'unseen', math.max(noted_until, tonumber(redis.call('HGET', KEYS[1], 'unseen') or 0))", "'unseen', noted_until",
		[]string{"TestWhoWaitsForLongIsTakenForOneThatHearsAfterWhoWaitsBriefly"},
	},
	{
		"who waits on a condition vouches for its subscription", "lua/await.lua",
		"if ARGV[9] then", "if false then",
		[]string{"TestSignalsWakeInOrderWhereNobodyIsCounted"},
	},
	{
		"an outage is told with the time that the call has waited", ". waiting.request",
		"tries, again := 0, false", "tries, again := 0, false; asked = w.keeper.c.clock.Now()",
		[]string{"TestAnOutageIsToldWithTheTimeThatTheCallHasWaited"},
	},
	{
		"a wait that is too short for an answer says so", ". unanswered",
		"if d < time.Millisecond {", "if false {",
		[]string{"TestAWaitThatIsTooShortForAnAnswerSaysSo"},
	},
	{
		"a refusal of credentials sends to the password", "internal/access hinted",
		"strings.Contains(err.Error(), of)", `strings.Contains("", of)`,
		[]string{"TestAWrongPasswordIsToldAtOnceByTheFirstCall"},
	},
}
