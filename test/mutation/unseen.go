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
		[]string{"TestTheFirstEchoOfAClientThatIsNotSeenIsToldOnce"},
	},
	{
		"the first who hears that it is not seen asks again", ". Client.deliver",
		"c.rouse(func(*acquisition) bool { return true }, false)", "",
		[]string{"TestF14WaitersThatNobodyCountsHoldInTheirOrder"}, // on a real server its first request may come after the echo
	},
	{
		"a client vouches anew for each connection", "internal/listener Listeners.linked",
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
	{
		"one attempt to enter again is not repeated", ". acquisition.tell",
		"(!once || ctx.Err() != nil)", "true",
		[]string{"TestOneAttemptToEnterAgainIsNotRepeated"},
	},
	{
		"one attempt of an owner that has lost the lock says so", ". waiting.acquire",
		"if h, err := acquired(s.Acquisition).reenter(w, false); !ending.Is(err, errGone) { return h, err }; return w.acquire()", "return acquired(s.Acquisition).reenter(w, false)",
		[]string{"TestOneAttemptThatFindsItsOwnersLossSaysSo"},
	},
	{
		"close loses what a Multi has returned, and releases it not", ". Hold.markReturned",
		"h.hold.Pending = false", "",
		[]string{"TestCloseLeavesTheLocksOfAMultiToTheirLeases"},
	},
	{
		"a hold that is wanted listens no longer", ". Hold.whenWanted",
		"if leave != nil { leave() }", "_ = leave",
		[]string{"TestAShardedHolderThatIsWantedDoesNotListen"},
	},
	{
		"a closed redis client is no outage", ". requestError.Unwrap",
		"&& outcome != transport.Closed", "",
		[]string{"TestClosedRedisClientIsToldAtOnce"},
	},
	{
		"who asks a replica is sent to the primary", ". requestError.Error",
		"if transport.ReadOnly(e.err) {", "if false {",
		[]string{"TestPassingErrorsAreWaitedOut"},
	},
	{
		"one unanswered try is not logged", ". waiting.request",
		"tries > 1 &&", "",
		[]string{"TestARequestThatIsAnsweredAtTheSecondTryIsNotInTheLog"},
	},
	{
		"the log counts the calls that wait", ". waiting.request",
		"w.keeper.c.unheard.Begin()", "",
		[]string{"TestTheLogOfAnOutageHasFewLinesAndTheNumberOfCalls"},
	},
	{
		"an error counts the holders that it does not name", ". waiting.whoHolds",
		`more = fmt.Sprintf(", and by %d more", n)`, "",
		[]string{"TestErrorsSayWhoHoldsWhereThatIsAskedFor"},
	},
	{
		"a silent server is not asked who holds", ". waiting.explain",
		"w.keeper.c.cfg.whoHolds && w.wasTaken &&", "w.keeper.c.cfg.whoHolds &&",
		[]string{"TestNobodyIsAskedWhoHoldsWhileRedisIsSilent"},
	},
	{
		"who holds is told of a wait that ended by its time", ". waiting.explain",
		"!taken && w.ctx.Err() != nil", "!taken",
		[]string{"TestAClientThatIsShutDownAsksNobodyWhoHolds"},
	},
}
