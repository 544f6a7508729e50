package mutation

// outageRules are those without which an outage looks like contention, or is
// never told.
var outageRules = []Rule{
	{
		"an outage is an ErrUnavailable", ". requestError.Unwrap",
		"return []error{ErrUnavailable, e.err}", "return []error{e.err}",
		[]string{"TestDeadlineOfAContextTellsAnOutageFromATakenLock", "TestAnOutageIsNeverTakenForContention"},
	},
	{
		"redisson: an outage is an ErrUnavailable", "redisson outage",
		"return fmt.Errorf(\"%w: %w\", relock.ErrUnavailable, err)", "return err",
		[]string{"TestDeadlineTellsAnOutageFromATakenLock"},
	},
	{
		"a full disk passes", "internal/transport classifyAnswer",
		`"NOREPLICAS", "MISCONF",`, `"NOREPLICAS",`,
		[]string{"TestAFullDiskIsWaitedOut"},
	},
	{
		"a first request that fails is repeated as often as a waiter asks", ". waiting.request",
		"w.keeper.c.draining, trust.Attempt(a.Terms.TTL), func", "w.keeper.c.draining, max(trust.Attempt(a.Terms.TTL), time.Hour), func",
		[]string{"TestAWaiterThatIsNotAnsweredAsksAsOftenAsOneThatIs"},
	},
	{
		"a heartbeat that fails is repeated as often as a waiter asks", "internal/room Entry.retry",
		"at.Pause(int(e.fails), most)", "at.Pause(int(e.fails), max(most, time.Hour))",
		[]string{"TestAWaiterThatIsNotAnsweredAsksAsOftenAsOneThatIs"},
	},
	{
		"who hears again asks at once though a heartbeat fails", "internal/room Request.Missed",
		"case e.again: e.Kick(at); default: e.retry(trust", "default: e.retry(trust",
		[]string{"TestAWaiterThatHearsAgainAsksAtOnceThoughAHeartbeatFails"},
	},
	{
		"a wait without an answer is no contention", ". waiting.endOfTry",
		"case w.wasTaken && wait > 0:", "case wait > 0:",
		[]string{"TestAnOutageIsNeverTakenForContention", "TestAServerThatCannotBeDialledIsNoContention", "TestWhoStandsInLineIsToldOfAnOutage"},
	},
	{
		"an outage that begins while a call waits is no contention", ". waiting.endOfTry",
		"if is && trouble.silent > trust.Attempt(w.lock.terms.TTL) {", "if false {",
		[]string{"TestAnOutageThatBeginsWhileACallPollsIsNoContention", "TestAGrantThatCannotBeConfirmedInAnOutageIsNoContention"},
	},
	{
		"a question of a moment ago is no outage", ". waiting.endOfTry",
		"if is && trouble.silent > trust.Attempt(w.lock.terms.TTL) {", "if is {",
		[]string{"TestAnOutageThatBeginsWhileACallPollsIsNoContention"},
	},
	{
		"a question that failed is an outage", ". waiting.contextEnded",
		"w.wasTaken = (taken || w.wasTaken) && trouble.Err == nil", "w.wasTaken = taken || w.wasTaken",
		[]string{"TestAnOutageThatBeginsWhileACallWaitsIsNoContention"},
	},
	{
		"one attempt ends in time", ". Lock.try",
		"limit = l.terms.Replicas.Within(l.terms.TTL)", "limit = time.Hour",
		[]string{"TestAServerThatCannotBeDialledIsNoContention"},
	},
	{
		"what the first waiter is told is kept for the line", "internal/room Entry.noteWaiting",
		"e.Room.needRare()", "",
		[]string{"TestLineKnowsWhatItsFirstWaiterWasTold"},
	},
	{
		"the log of an outage has ever fewer lines", "internal/unheard Calls.Due",
		"return c.n, false", "return c.n, true",
		[]string{"TestTheLogOfAnOutageHasFewLinesAndTheNumberOfCalls"},
	},
	{
		"a Shutdown that runs out of time names the holds that are left", ". Client.leftover",
		"if h := a.Session.Newest(); h != nil {", "if h := a.Session.Newest(); h == nil {",
		[]string{"TestShutdownThatRunsOutOfTimeNamesTheHoldsThatAreLeft"},
	},
	{
		"the first unanswered request is told of", ". failed",
		"if ctx.Err() != nil && errors.Is(err, ctx.Err()) { return unanswered", "if ctx.Err() != nil && errors.Is(err, ctx.Err()) { return nil; return unanswered",
		[]string{"TestContextSaysWhatWasTheMatterWithRedis"},
	},
	{
		"a lost hold in the way is no contention", ". waiting.endOfTry",
		"case w.handleOccupied:", "case false:",
		[]string{"TestLostHoldOfTheHandleIsNoContention"},
	},
	{
		"a waiter that cannot be woken asks", ". waiting.ask",
		"w.awaitMessages(min(w.lock.terms.TTL/3, time.Second))", "w.awaitMessages(24 * time.Hour)",
		[]string{"TestFreeLockIsHadThoughNothingCanBeHeard"},
	},
	{
		"a server that is too old is named", "lua/permit.lua",
		"if not redis.acl_check_cmd and type(prolonged)", "if false and type(prolonged)",
		[]string{"TestServerThatIsTooOldIsNamedByItsVersion"},
	},
	{
		"the cause of a context is no answer", "internal/transport classify",
		"case ending.In(err):", "case false:",
		[]string{"TestGrantOfACallThatWasCutShortIsGivenBackWhateverTheCause"},
	},
	{
		"what is decided does not go by the cause of a context", "internal/ending Is",
		"return Is(e.err, target)", "return errors.Is(e, target)",
		[]string{"TestTheCauseIsToldAndDecidesNothing", "TestDowngradeThatIsCutShortSaysSoWhateverTheCause", "TestCallUnderAContextThatATakenLockHasEndedIsNotTaken"},
	},
	{
		"another kind under a hold's context is no deadlock", ". waitsForItself",
		"h.lock.hash != l.hash || h.lock.kind != l.kind ||", "h.lock.hash != l.hash ||",
		[]string{"TestAnotherKindUnderAHoldsContextIsToldAsThat"},
	},
	{
		"what Sentinels say is no answer to a script", "internal/transport classify",
		"strings.Contains(err.Error(), noSentinel)", "false",
		[]string{"TestWhatSentinelsAnswerIsNoAnswerToTheScript"},
	},
	{
		"links of a server that hangs are few", "internal/inbox Inbox.link",
		"case b.links <- struct{}{}:", "default:",
		[]string{"TestAServerThatHangsKeepsFewLinksThoughNothingTimesOut"},
	},
	{
		"a refused subscription is told", "internal/inbox Inbox.isRefusal",
		`&& b.cfg.Refused(err)`, `&& false`,
		[]string{"TestRefusedSubscriptionIsToldAtOnce"},
	},
	{
		"renewals of many go apart", ". watchdog.renewTogether",
		"call.Apart = true", "call.Apart = false",
		[]string{"TestOneUnansweredRenewalBatchDelaysNoOther"},
	},
	{
		"what a hook sends after its call is refused", "internal/transport passage.end",
		"p.over = true", "",
		[]string{"TestHookThatSendsACommandTwiceAtOnceOrLateIsRefused"},
	},
}
