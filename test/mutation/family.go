package mutation

// familyRules are those of what is composed of locks.
var familyRules = []Rule{
	{
		"a context's hold is found by its name", ". FromContext",
		"is && held.Name() == name {", "is {",
		[]string{"TestContextKnowsTheHoldsItDescendsFrom"},
	},
	{
		"a nil context has no owner", ". OwnerFrom",
		"if ctx != nil {", "{",
		[]string{"TestANilContextHasNoOwner"},
	},
	{
		"a context knows its outer holds", ". FromContext",
		"return held, true }", "return held, true }; break",
		[]string{"TestContextKnowsTheHoldsItDescendsFrom"},
	},
	{
		"of several holds of a name the innermost is meant", ". FromContext",
		"return held, true } }; return nil, false", "defer func() { h, ok = held, true }() } }; return nil, false",
		[]string{"TestContextKnowsTheInnermostHoldOfAName"},
	},
	{
		"whether one leads is judged by the clock", ". Election.IsLeader",
		"h.(*Hold).Err() == nil", "!h.(*Hold).hold.Lost",
		[]string{"TestElectionKnowsNoLeaderAfterAPause"},
	},
	{
		"who loses a term campaigns again", ". Election.serve",
		"errors.Is(end, ErrLost), ending.Join(err, end)", "false, ending.Join(err, end)",
		[]string{"TestElectionIsRunAgainAfterALoss", "TestElectionKnowsNoLeaderAfterAPause"},
	},
	{
		"a lead that hangs is in no other Run's way", ". Election.Run",
		"l := &Lock{spec: e.lock.spec, hash: e.lock.hash}", "l := e.lock",
		[]string{"TestElectionIsRunBesideALeadThatHangs"},
	},
	{
		"a term that is over is nobody's", ". Election.serve",
		"e.terms.Delete(h)", "",
		[]string{"TestElectionLeavesNothingOfItsTerms"},
	},
	{
		"candidates wait for missing replicas", ". Election.Run",
		"case !ending.Is(err, ErrReplicas):", "case true:",
		[]string{"TestElectionWaitsForMissingReplicas"},
	},
	{
		"a change is told once", ". Election.Observe",
		"if (now != told || last) && !yield(leader, err) || last {", "if told != now+1 && !yield(leader, err) || last {",
		[]string{"TestElectionIsObserved"},
	},
	{
		"the end of an observation is told", ". Election.Observe",
		"(now != told || last) && !yield", "(now != told && !last) && !yield",
		[]string{"TestElectionIsObserved", "TestElectionThatCannotBeIsRefused"},
	},
	{
		"an observation ends with what ended it", ". Election.Observe",
		"now == failing && (", "(",
		[]string{"TestAnElectionWhoseObserverEndsWithAnAnswerTellsTheEnd"},
	},
	{
		"candidates stand in line", ". Client.NewElection",
		"slices.Concat(opts, []LockOption{Fair(), oneToken})", "slices.Concat(opts, []LockOption{})",
		[]string{"TestElectionHasOneLeaderUntilItGivesUp"},
	},
	{
		"a try for several locks ends with its wait", ". Multi.try",
		"return m.acquire(bounded, over, func", "_ = bounded; return m.acquire(ctx, over, func",
		[]string{"TestMultiTriesForNoLongerThanItsWait"},
	},
	{
		"each of several locks has a try of its own", ". Multi.try",
		"l.try(ctx, left, how)", "l.try(bounded, left, how)",
		[]string{"TestMultiIsTriedForByWhoIsFarFromRedis"},
	},
	{
		"a try for several locks that are lost ends with its wait", ". Multi.acquire",
		"if !ending.Pause(ctx, nil, transport.Backoff(try)) {", "if ending.Pause(ctx, nil, transport.Backoff(try)); false {",
		[]string{"TestMultiTriesForNoLongerThoughItsLocksAreLost"},
	},
	{
		"the least wait is none", ". Multi.try",
		"wait = max(wait, 0)", "wait += 0",
		[]string{"TestMultiTriesForNoLongerThanItsWait"},
	},
	{
		"replicas that take as long as a read are refused at once", ". terms.suits",
		"readTimeout > 0 && within >= readTimeout", "false",
		[]string{"TestReplicasThatTakeAsLongAsAReadAreRefusedAtOnce", "TestATicketWhoseReplicasTakeAsLongAsAReadIsRefused"},
	},
	{
		"a quorum's trust is the least of its best majority", "internal/quorum Trust",
		"return untils[need-1]", "return untils[0]",
		[]string{"TestQuorumOutlivesAMinority"},
	},
	{
		"a quorum's hold needs a majority", "internal/quorum Trust",
		"if len(untils) < need {", "if len(untils) < need-1 {",
		[]string{"TestQuorumIsLostWithItsMajority"},
	},
	{
		"a loss of a quorum is for good", "internal/quorum Majority.Err",
		"return h.finish(h.why())", "return h.why()",
		[]string{"TestQuorumIsLostWithItsMajority"},
	},
	{
		"a quorum needs a majority of the primaries", "internal/quorum Lock.need",
		"len(l.Primaries)/2 + 1", "len(l.Primaries)/2",
		[]string{"TestQuorumOutlivesAMinority"},
	},
	{
		"a quorum's token is written back", "internal/quorum Majority.raise",
		"return own == token ||", "return token != 0 ||",
		[]string{"TestQuorumTokensGrowThoughClocksDiffer"},
	},
	{
		"a quorum's token is its majority's largest", "internal/quorum choose",
		"m.token > token {", "m.token > 0 {",
		[]string{"TestQuorumTokensGrowThoughClocksDiffer"},
	},
	{
		"a raised counter leaves the lease as it is", "lua/raise.lua",
		"if alone and not record[3] then", "if false then",
		[]string{"TestLeaseOfADeadQuorumHolderEndsThoughClocksDiffer"},
	},
	{
		"a raised counter lives until the clock has passed it", "lua/raise.lua",
		"ARGV[4] + math.max(ahead, 0), 'GT'", "ARGV[4], 'GT'",
		[]string{"TestQuorumTokensGrowThoughTheFastClockIsGoneForLong"},
	},
	{
		"a release leaves a raised counter its life", "lua/release.lua",
		"ARGV[5] + math.max(ahead, 0))", "ARGV[5])",
		[]string{"TestQuorumTokensGrowThoughTheFastClockIsGoneForLong"},
	},
	{
		"a raised counter keeps its life when the last hold ends", "lua/shared_settle.lua",
		"life(0, state.keep)", "state.keep",
		[]string{"TestQuorumTokensGrowThoughTheFastClockIsGoneForLong"},
	},
	{
		"a raised counter is forgotten once the clock has passed it", "lua/raise.lua",
		"math.max(ahead, 0), 'GT'", "math.max(ahead, 0) * 2, 'GT'",
		[]string{"TestRaisedCounterIsForgottenOnceTheClockHasPassedIt"},
	},
	{
		"a primary that was forced is not taken again", "internal/quorum Majority.seek",
		"&& !m.forced", "",
		[]string{"TestQuorumHoldEndsOnceAMajorityWasForced"},
	},
	{
		"a primary that was lost is taken again after a look at the others", "internal/quorum Majority.seek",
		"h.askWhetherHeld()", "",
		[]string{"TestQuorumHoldEndsOnceAMajorityWasForcedTogetherThoughMessagesAreLost"},
	},
	{
		"a quorum whose primaries split looks for one server", ". Quorum.check",
		"seldom(&q.splits)", "false",
		[]string{"TestQuorumOfClientsOfOneServerSaysSo"},
	},
	{
		"a quorum that a named owner enters looks for one server", ". Quorum.check",
		"seldom(&q.entries)", "false",
		[]string{"TestQuorumOfClientsOfOneServerSaysSo"},
	},
	{
		"a client of a quorum that meets itself is on its own server", ". Quorum.meets",
		"i != client && holds", "holds",
		[]string{"TestQuorumOfServersOfTheirOwnIsNotTakenForOneServer"},
	},
	{
		"primaries that come back are taken again", "internal/quorum Majority.reacquire",
		"h.seek(i, 4*h.lock.patience(), m.hold != nil)", "",
		[]string{"TestQuorumOutlivesAMinority", "TestQuorumOutlivesLostDataOneByOne"},
	},
	{
		"a quorum hears of the loss of a primary", "internal/quorum Majority.adopt",
		"func() { signal(h.gone) }", "func() {}",
		[]string{"TestQuorumIsLostWithItsMajority"},
	},
	{
		"a primary that is granted after a loss does not make up for it", "internal/quorum Majority.adopt",
		"h.holdsMajority() && ", "",
		[]string{"TestAPrimaryThatIsTakenAgainMakesUpForNoLoss", "TestQuorumOfASuspendedHolderIsLostThoughAPrimaryIsGrantedThen"},
	},
	{
		"a primary whose hook ends its goroutine is asked again", "internal/quorum Majority.seek",
		"defer func() { h.adopt(primary, hold, err) }()", "defer func() { if err != errQuit { h.adopt(primary, hold, err) } }()",
		[]string{"TestAPrimaryWhoseHookEndsItsGoroutineIsAskedAgain", "TestAnAttemptWaitsForNoHookThatHasEndedItsGoroutine"},
	},
	{
		"who does not have the first primary gives back what it has", "internal/quorum Lock.Attempt",
		"if !held {", "if held = true; !held {",
		[]string{"TestQuorumSettlesSplitVotesInFiveRoundTrips"},
	},
	{
		"a grant that comes as the token is made counts", "internal/quorum Majority.note",
		"return false, h.token", "return false, 0",
		[]string{"TestAGrantThatComesAsTheTokenIsMadeCounts"},
	},
	{
		"what a quorum has said is not forgotten as its wait ends", ". QuorumLock.acquire",
		"if said == nil || !few || ctx.Err() == nil {", "if true {",
		[]string{"TestQuorumThatWasTakenSaysSoThoughTheWaitEndsInAPause"},
	},
	{
		"what a quorum has said is not forgotten after the queue", "internal/quorum Lock.Attempt",
		"if err != nil && ctx.Err() != nil && !l.Errors.Final(err) {", "if false {",
		[]string{"TestQuorumThatWasTakenSaysSoThoughTheWaitEndsAfterTheQueue"},
	},
	{
		"a wait that its caller cancels was not as long as it was to be", ". endOfTries",
		", ending.Is(err, ErrNotAcquired):", ":",
		[]string{"TestQuorumCallWhoseContextIsCancelledSaysSo"},
	},
	{
		"one primary ends no call that queues there", "internal/quorum Majority.queue",
		`return fmt.Errorf("%w: primary %d: %w", ErrFewAnswer, at, err)`, "return err",
		[]string{"TestQuorumCallOutlivesTheClientThatItQueuesWith"},
	},
	{
		"a test that ends ends its faults first", "relocktest Server.open",
		"s.endFaults()", "",
		[]string{"TestNobodyWaitsForAFaultAtTheEnd"},
	},
	{
		"assertions see the locks of every key prefix", "relocktest Server.eyesOn",
		`!is || prefix == "relock"`, "!is || is",
		[]string{"TestAssertionsSeeTheLocksOfEveryKeyPrefix"},
	},
	{
		"primaries that do not answer are an outage", "internal/quorum Majority.tally",
		`fmt.Errorf("%w: no reply in time", h.lock.Errors.Silent)`, `errors.New("no reply in time")`,
		[]string{"TestQuorumWhosePrimariesAreSilentTellsAnOutage"},
	},
	{
		"an attempt that is cut short as its token is made says so", "internal/quorum Majority.elect",
		`return fmt.Errorf("%w: its context ended before a majority had the token: %w", ErrFewAnswer, h.lock.Errors.Silent)`, "return ctx.Err()",
		[]string{"TestAnAttemptThatEndsAsTheTokenIsMadeSaysSo"},
	},
	{
		"a primary that has not answered yet is not asked again", "internal/quorum Majority.seek",
		"!m.busy && m.hold == nil", "m.hold == nil",
		[]string{"TestAPrimaryThatHasNotAnsweredYetIsNotAskedAgain"},
	},
	{
		"a primary that refused an attempt is asked later", "internal/quorum Majority.elect",
		"m.busy || m.hold != nil", "true",
		[]string{"TestAPrimaryThatRefusedTheAttemptIsTakenLater"},
	},
	{
		"who gives back hears that it is over", "internal/quorum Majority.settled",
		"signal(h.votes)", "",
		[]string{"TestAnAttemptThatFailsEndsOnceWhatItHadIsGivenBack"},
	},
	{
		"a quorum's nested call of another owner would wait for itself", ". QuorumLock.caller",
		"h.Owner() != owner", "owner == \"\"",
		[]string{"TestQuorumOfANamedOwnerReenters"},
	},
	{
		"locks of one name on other primaries are others", ". QuorumLock.caller",
		"h.lock.first.c == l.first.c &&", "",
		[]string{"TestQuorumOfANamedOwnerReenters"},
	},
	{
		"a primary that is had is not asked again", "internal/quorum Majority.seek",
		"!m.busy && m.hold == nil && !m.forced", "!m.busy && !m.forced",
		[]string{"TestAGrantThatComesAsOthersAreAskedIsNotAskedForAgain"},
	},
	{
		"a nested hold of a quorum has no smaller token", ". Hold.raise",
		"h.hold.Session.Raise(instant)", "",
		[]string{"TestQuorumTokenOfANestedHoldIsNoSmallerThoughClocksDiffer"},
	},
	{
		"one attempt waits for what it gives back no longer than it asks", "internal/quorum Majority.GiveBack",
		"patience := h.lock.patience()", "patience := time.Hour",
		[]string{"TestOneAttemptEndsThoughWhatItHadDoesNot"},
	},
	{
		"a candidate that is cut short in a pause says so", ". Election.Run",
		"return lockError(l.Name(), endOfTries(ctx, errors.Unwrap(err)))", "return err",
		[]string{"TestElectionThatEndsInAPauseSaysWhy"},
	},
	{
		"a candidate whose client closes in a pause says so", ". Election.Run",
		"return lockError(l.Name(), ErrClosed)", "return err",
		[]string{"TestElectionThatEndsInAPauseSaysWhy"},
	},
	{
		"a token that a majority has stays", "internal/quorum choose",
		"have[m.token] == need", "false",
		[]string{"TestATokenThatAMajorityHasStays"},
	},
	{
		"a primary with a larger token is told of the hold's", "internal/room Session.Raise",
		"{ s.token = instant }", "{ s.token = max(s.token, instant) }",
		[]string{"TestQuorumTokenOfANestedHoldIsTheOuterOnesThoughAnAheadPrimaryCameLater"},
	},
	{
		"a token that is raised is an instant", ". Hold.raise",
		"h.hold.Session.Raise(instant)", "h.hold.Session.Raise(token)",
		[]string{"TestQuorumTokenOfANestedHoldIsTheOuterOnesWhateverTheDate", "TestQuorumTokenOfANestedHoldIsNoSmallerThoughClocksDiffer"},
	},
	{
		"a quorum's longest hold is the majority's", "internal/quorum Majority.trust",
		"case h.until.IsZero() || until.Before(h.until):", "case true:",
		[]string{"TestTheLongestHoldIsTheMajoritys"},
	},
	{
		"a quorum's longest hold begins with the hold", "internal/quorum Lock.Attempt",
		"h := l.begin(ctx); defer", "h, began := l.begin(ctx), time.Now(); defer func() { if h.until = began.Add(l.MaxHold + l.TTL); l.MaxHold == 0 { h.until = time.Time{} } }(); defer",
		[]string{"TestTheLongestHoldBeginsWithTheHold"},
	},
	{
		"what is left of a lost majority goes back", "internal/quorum Majority.keep",
		"if errors.Is(h.Err(), l.Errors.Lost) {", "if errors.Is(h.Err(), l.Errors.Lost) && false {",
		[]string{"TestTheLongestHoldIsTheMajoritys"},
	},
	{
		"too few answers of a quorum are no contention", "internal/quorum Majority.tally",
		"case answered >= need:", "default:",
		[]string{"TestQuorumOutlivesAMinority"},
	},
	{
		"a quorum's nested call sees its own hold", ". QuorumLock.acquire",
		"owner, said := l.caller(ctx)", "owner, said := l.caller(context.Background())",
		[]string{"TestQuorumOfANamedOwnerReenters"},
	},
	{
		"a quorum's call under a done context says so first", ". QuorumLock.caller",
		`case ctx.Err() != nil: return "", lockError(l.name, unasked(ctx))`, "",
		[]string{"TestQuorumCallUnderADoneContextSaysSoFirst"},
	},
	{
		"a quorum whose clients are closed says so", "internal/quorum Majority.why",
		"if open < h.lock.need() {", "if false {",
		[]string{"TestQuorumWithClosedClients"},
	},
	{
		"a lost hold of a quorum occupies its handle", ". QuorumLock.occupied",
		"if !is {", "if is || !is {",
		[]string{"TestLostQuorumHoldOccupiesItsHandle"},
	},
	{
		"a quorum's call that is granted the lock before another has lost it", ". QuorumLock.loseOlder",
		"h.majority.Lose()", "",
		[]string{"TestAQuorumCallThatStallsWithItsMajorityHoldsNothingBesideALaterOne"},
	},
	{
		"a quorum's handle that is granted the lock again has lost its older hold", ". QuorumLock.loseOlder",
		"other.majority.Lose()", "",
		[]string{"TestAQuorumLockHasNoSecondHoldBeforeTheFirstIsUnlocked", "TestUnlockOfALostQuorumHoldLeavesTheNextHoldOfItsHandle"},
	},
	{
		"a quorum's grant for an occupied handle is given back", ". QuorumLock.acquire",
		"err == nil || !l.register.Remove(h)", "true || err == nil",
		[]string{"TestQuorumGrantForAnOccupiedHandleIsGivenBack"},
	},
	{
		"an occupied handle of a closed quorum is closed", ". QuorumLock.occupied",
		"case 2*closed >= len(l.majority.Primaries):", "case false:",
		[]string{"TestOccupiedQuorumWithClosedClientsIsClosed"},
	},
	{
		"a quorum knows whose client was closed", "internal/quorum Majority.reacquire",
		"why := m.hold.Err()", "why := m.err",
		[]string{"TestTheLossByAClientThatWasClosedWhileItWasAskedSaysSo"},
	},
	{
		"a primary of a quorum that no longer had the hold has not released it", "internal/quorum Majority.release",
		"mayHave--", "held++",
		[]string{"TestAReleaseIsOfALossWhereNoMajorityHadIt", "TestQuorumReleaseSaysThatItsMajorityWasGone"},
	},
	{
		"a quorum's release hears whether a majority had it", "internal/quorum Majority.release",
		"held < need && mayHave >= need", "held < 0",
		[]string{"TestAReleaseIsOfALossWhereNoMajorityHadIt", "TestQuorumReleaseHearsWhetherItsMajorityWasGone"},
	},
	{
		"what primaries say at the end of a wait is heard", "internal/quorum Majority.gather",
		"wait+h.lock.patience()", "max(wait, h.lock.patience())",
		[]string{"TestAMajorityThatIsTakenAfterTheQueueIsContention"},
	},
	{
		"fence: a script compares the token first", "fence NewScript",
		"compare + source", "\"table.remove(KEYS, 1) table.remove(ARGV, 1) \" + source",
		[]string{"TestRedisRefusesATokenThatIsOlder", "TestRedisNeverGoesBackToAnOlderToken", "TestDemoShowsWhatItClaims"},
	},
	{
		"fence: what is no token is refused", "fence Script.Run",
		"if token <= 0 {", "if false {",
		[]string{"TestRedisRefusesWhatIsNoToken"},
	},
	{
		"fence: a pipeline is refused", "fence Script.Run",
		"if _, is := rdb.(redis.Pipeliner); is {", "if _, is := rdb.(redis.Pipeliner); is && rdb == nil {",
		[]string{"TestAPipelineIsRefusedBeforeAnythingIsQueued"},
	},
	{
		"fence: a source whose reply is lost does not run again", "fence send",
		"client.Process(ctx, once{cmd})", "client.Process(ctx, cmd)",
		[]string{"TestASourceWhoseReplyIsLostDoesNotRunAgain", "TestASourceWhoseReplyIsLostDoesNotRunAgainInACluster"},
	},
	{
		"fence: an error of the source is no refusal", "fence Script.Run",
		"strings.CutPrefix(answer.Error(), refusal)",
		`strings.CutPrefix(strings.TrimPrefix(answer.Error(), "RELOCK-"), "STALE ")`,
		[]string{"TestAnErrorOfTheSourceIsNoRefusal"},
	},
	{
		"fence: PostgreSQL and SQLite store no older token", "fence Dialect.advance",
		"tx.ExecContext(ctx, $sql, resource, token)",
		"tx.ExecContext(ctx, `INSERT INTO relock_fences VALUES ($1, $2) ON CONFLICT (resource) DO UPDATE SET token = excluded.token`, resource, token)",
		[]string{
			"TestAnOlderTokenIsRefusedAndNamed/PostgreSQL", "TestNoResourceGoesBackToAnOlderToken/PostgreSQL", "TestAnOlderTransactionWaitsAndIsRefused/PostgreSQL",
			"TestAnOlderTokenIsRefusedAndNamed/SQLite", "TestNoResourceGoesBackToAnOlderToken/SQLite", "TestAnOlderTransactionWaitsAndIsRefused/SQLite",
		},
	},
	{
		"fence: MySQL stores no older token", "fence Dialect.advance",
		"tx.ExecContext(ctx, $sql, resource, token, token)",
		"tx.ExecContext(ctx, `INSERT INTO relock_fences VALUES (?, ?) ON DUPLICATE KEY UPDATE token = ?`, resource, token, token)",
		[]string{"TestAnOlderTokenIsRefusedAndNamed/MariaDB", "TestNoResourceGoesBackToAnOlderToken/MariaDB", "TestAnOlderTransactionWaitsAndIsRefused/MariaDB"},
	},
	{
		"fence: PostgreSQL and SQLite say that nothing was stored", "fence Dialect.advance",
		"n > 0", "n >= 0",
		[]string{"TestAnOlderTokenIsRefusedAndNamed/PostgreSQL", "TestAnOlderTokenIsRefusedAndNamed/SQLite"},
	},
	{
		"fence: MySQL reads the token as it is now", "fence Dialect.advance",
		"tx.QueryRowContext(ctx, $sql, resource).Scan(&largest); return largest, err; } return 0, fmt.Errorf",
		"tx.QueryRowContext(ctx, `SELECT token FROM relock_fences WHERE resource = ?`, resource).Scan(&largest); return largest, err; }; return 0, fmt.Errorf",
		[]string{"TestAnEarlierReadDoesNotHideANewerToken/MariaDB"},
	},
	{
		"fence: MySQL tells one resource from another by each byte", "fence Dialect.Schema",
		"if d == MySQL { return $sql }",
		"if d == MySQL { return `CREATE TABLE IF NOT EXISTS relock_fences (resource VARCHAR(512) NOT NULL PRIMARY KEY, token BIGINT NOT NULL) ENGINE=InnoDB` }",
		[]string{"TestAnOlderTokenIsRefusedAndNamed/MariaDB"},
	},
	{
		"fence: a database refuses what an older token is for", "fence Dialect.Check",
		"largest > token", "false",
		[]string{"TestAnOlderTokenIsRefusedAndNamed/PostgreSQL", "TestAnOlderTokenIsRefusedAndNamed/MariaDB", "TestAnOlderTokenIsRefusedAndNamed/SQLite"},
	},
	{
		"fence: a database refuses what is no token", "fence Dialect.Check",
		"if token <= 0 {", "if false {",
		[]string{"TestAnOlderTokenIsRefusedAndNamed/PostgreSQL", "TestAnOlderTokenIsRefusedAndNamed/MariaDB", "TestAnOlderTokenIsRefusedAndNamed/SQLite"},
	},
	{
		"a quorum asks on while replicas are too few", ". isFinal",
		"ErrTooManyHolds}", "ErrTooManyHolds, ErrReplicas}",
		[]string{"TestAQuorumGoesOnAskingWhileReplicasAreTooFew"},
	},
	{
		"a negative wait for a majority is one attempt", ". QuorumLock.try",
		"wait <= 0", "wait == 0",
		[]string{"TestQuorumTriesOnceHoweverLittleItMayWait"},
	},
	{
		"a try for a majority without a context is an error", ". QuorumLock.try",
		"ctx == nil || m.once", "m.once",
		[]string{"TestEveryLockerEndsItsWaitWithItsContext/quorum"},
	},
	{
		"a try for several locks without a context is an error", ". Multi.try",
		"if ctx != nil {", "if true {",
		[]string{"TestEveryLockerEndsItsWaitWithItsContext/multi"},
	},
	{
		"several locks with a bad one return its error", ". together",
		"lockError(l.Name(), l.err)", "lockError(l.Name(), fmt.Errorf(`%w: %v`, ErrInvalidOption, l.err))",
		[]string{"TestMultiOfLocksThatDoNotGoTogetherIsRefused"},
	},
	{
		"a primary that does not count is asked each second", "internal/quorum Majority.keep",
		"min(max(l.TTL/10, 50*time.Millisecond), time.Second)", "max(l.TTL/10, 50*time.Millisecond)",
		[]string{"TestAPrimaryWhoseHookEndsItsGoroutineIsAskedAgain"},
	},
}
