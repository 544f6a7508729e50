package mutation

// familyRules are those of what is composed of locks.
var familyRules = []Rule{
	{
		"a context's hold is found by its name", "context.go",
		"if c.hold.Name() == name {", "if c.hold != nil {",
		[]string{"TestContextKnowsTheHoldsItDescendsFrom"},
	},
	{
		"a context knows its outer holds", "context.go",
		"			return c.hold, true\n		}\n", "			return c.hold, true\n		}\n		break\n",
		[]string{"TestContextKnowsTheHoldsItDescendsFrom"},
	},
	{
		"of several holds of a name the innermost is meant", "context.go",
		"			return c.hold, true\n		}\n	}\n	return nil, false", "			defer func() { h, ok = c.hold, true }()\n		}\n	}\n	return nil, false",
		[]string{"TestContextKnowsTheInnermostHoldOfAName"},
	},
	{
		"whether one leads is judged by the clock", "election.go",
		"if h.Err() == nil { // may call hooks: not under e.mu", "if h.peek() == nil {",
		[]string{"TestElectionKnowsNoLeaderAfterAPause"},
	},
	{
		"who loses a term campaigns again", "election.go",
		"errors.Is(end, ErrLost), errors.Join(err, end)", "false, errors.Join(err, end)",
		[]string{"TestElectionIsRunAgainAfterALoss", "TestElectionKnowsNoLeaderAfterAPause"},
	},
	{
		"a lead that hangs is in no other Run's way", "election.go",
		"	l := &Lock{spec: e.lock.spec, hash: e.lock.hash}\n", "	l := e.lock\n",
		[]string{"TestElectionIsRunBesideALeadThatHangs"},
	},
	{
		"a term that is over is nobody's", "election.go",
		"slices.DeleteFunc(terms, func(other *Hold) bool { return other == h })", "terms",
		[]string{"TestElectionLeavesNothingOfItsTerms"},
	},
	{
		"candidates wait for missing replicas", "election.go",
		"case !ending.Is(err, ErrReplicas):", "case true:",
		[]string{"TestElectionWaitsForMissingReplicas"},
	},
	{
		"a change is told once", "election.go",
		"if (now != told || last) && !yield(leader, err) || last {", "if told != now+1 && !yield(leader, err) || last {",
		[]string{"TestElectionIsObserved"},
	},
	{
		"the end of an observation is told", "election.go",
		"(now != told || last) && !yield", "(now != told && !last) && !yield",
		[]string{"TestElectionIsObserved", "TestElectionThatCannotBeIsRefused"},
	},
	{
		"candidates stand in line", "election.go",
		"slices.Concat(opts, []LockOption{Fair(), apart})", "slices.Concat(opts, []LockOption{})",
		[]string{"TestElectionHasOneLeaderUntilItGivesUp"},
	},
	{
		"a try for several locks ends with its wait", "multi.go",
		"	return m.acquire(bounded, over, func", "	_ = bounded\n	return m.acquire(ctx, over, func",
		[]string{"TestMultiTriesForNoLongerThanItsWait"},
	},
	{
		"a try for several locks that are lost ends with its wait", "multi.go",
		"		if !transport.Pause(ctx, nil, transport.Backoff(try)) {", "		if transport.Pause(ctx, nil, transport.Backoff(try)); false {",
		[]string{"TestMultiTriesForNoLongerThoughItsLocksAreLost"},
	},
	{
		"the least wait is none", "multi.go",
		"	wait = max(wait, 0) ", "	wait += 0 ",
		[]string{"TestMultiTriesForNoLongerThanItsWait"},
	},
	{
		"replicas that take as long as a read are refused at once", "options.go",
		"fits(t.Replicas, t.TTL, tr.ReadTimeout())", "fits(t.Replicas, t.TTL, 0)",
		[]string{"TestReplicasThatTakeAsLongAsAReadAreRefusedAtOnce", "TestATicketWhoseReplicasTakeAsLongAsAReadIsRefused"},
	},
	{
		"a quorum's trust is the least of its best majority", "internal/quorum/several.go",
		"return untils[need-1]", "return untils[0]",
		[]string{"TestQuorumOutlivesAMinority"},
	},
	{
		"a quorum's hold needs a majority", "internal/quorum/several.go",
		"if len(untils) < need {", "if len(untils) < need-1 {",
		[]string{"TestQuorumIsLostWithItsMajority"},
	},
	{
		"a loss of a quorum is for good", "internal/quorum/majority.go",
		"	return h.finish(h.why())\n", "	return h.why()\n",
		[]string{"TestQuorumIsLostWithItsMajority"},
	},
	{
		"a quorum needs a majority of the primaries", "internal/quorum/lock.go",
		"len(l.Primaries)/2 + 1", "len(l.Primaries)/2",
		[]string{"TestQuorumOutlivesAMinority"},
	},
	{
		"a quorum's token is written back", "internal/quorum/keep.go",
		"return own == token ||", "return token != 0 ||",
		[]string{"TestQuorumTokensGrowThoughClocksDiffer"},
	},
	{
		"a quorum's token is its majority's largest", "internal/quorum/keep.go",
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
		"a release that was waited for leaves a raised counter its life", "lua/release.lua",
		"math.max(life(0, keep), until_ms - now)", "math.max(keep, until_ms - now)",
		[]string{"TestQuorumTokensGrowThoughTheFastClockIsGoneForLong"},
	},
	{
		"a forced end leaves a raised counter its life", "lua/force.lua",
		"life(0, keep)", "keep",
		[]string{"TestQuorumTokensGrowThoughTheFastClockIsGoneForLong"},
	},
	{
		"a raised counter is forgotten once the clock has passed it", "lua/raise.lua",
		"math.max(ahead, 0), 'GT'", "math.max(ahead, 0) * 2, 'GT'",
		[]string{"TestRaisedCounterIsForgottenOnceTheClockHasPassedIt"},
	},
	{
		"a primary that was forced is not taken again", "internal/quorum/gather.go",
		"&& !m.forced ", "",
		[]string{"TestQuorumHoldEndsOnceAMajorityWasForced"},
	},
	{
		"a quorum whose primaries split looks for one server", "quorum.go",
		"seldom(&q.splits)", "false",
		[]string{"TestQuorumOfClientsOfOneServerSaysSo"},
	},
	{
		"a quorum that a named owner enters looks for one server", "quorum.go",
		"seldom(&q.entries)", "false",
		[]string{"TestQuorumOfClientsOfOneServerSaysSo"},
	},
	{
		"a client of a quorum that meets itself is on its own server", "quorum.go",
		"i != client && slices", "slices",
		[]string{"TestQuorumOfServersOfTheirOwnIsNotTakenForOneServer"},
	},
	{
		"primaries that come back are taken again", "internal/quorum/keep.go",
		"		h.seek(i, 4*h.lock.patience())\n", "",
		[]string{"TestQuorumOutlivesAMinority", "TestQuorumOutlivesLostDataOneByOne"},
	},
	{
		"a quorum hears of the loss of a primary", "internal/quorum/gather.go",
		"func() { signal(h.gone) }", "func() {}",
		[]string{"TestQuorumIsLostWithItsMajority"},
	},
	{
		"who does not have the first primary gives back what it has", "internal/quorum/gather.go",
		"		if !had {\n", "		if had = true; !had {\n",
		[]string{"TestQuorumSettlesSplitVotesInFiveRoundTrips"},
	},
	{
		"a grant that comes as the token is made counts", "internal/quorum/gather.go",
		"		return false, h.token\n", "		return false, 0\n",
		[]string{"TestAGrantThatComesAsTheTokenIsMadeCounts"},
	},
	{
		"what a quorum has said is not forgotten as its wait ends", "quorum.go",
		"if said == nil || !few || ctx.Err() == nil {", "if true {",
		[]string{"TestQuorumThatWasTakenSaysSoThoughTheWaitEndsInAPause"},
	},
	{
		"what a quorum has said is not forgotten after the queue", "internal/quorum/gather.go",
		"		if err != nil && ctx.Err() != nil && !l.Errors.Final(err) {", "		if false {",
		[]string{"TestQuorumThatWasTakenSaysSoThoughTheWaitEndsAfterTheQueue"},
	},
	{
		"a wait that its caller cancels was not as long as it was to be", "errors.go",
		", ending.Is(err, ErrNotAcquired): //", ": //",
		[]string{"TestQuorumCallWhoseContextIsCancelledSaysSo"},
	},
	{
		"one primary ends no call that queues there", "internal/quorum/gather.go",
		"		return fmt.Errorf(\"%w: primary %d: %w\", ErrFewAnswer, at, err)\n", "		return err\n",
		[]string{"TestQuorumCallOutlivesTheClientThatItQueuesWith"},
	},
	{
		"an attempt that is cut short as its token is made says so", "internal/quorum/keep.go",
		"		return fmt.Errorf(\"%w: its context ended before a majority had the token\", ErrFewAnswer)", "		return ctx.Err()",
		[]string{"TestAnAttemptThatEndsAsTheTokenIsMadeSaysSo"},
	},
	{
		"a primary that is had is not asked again", "internal/quorum/gather.go",
		"!m.asking && m.hold == nil && !m.forced", "!m.asking && !m.forced",
		[]string{"TestAGrantThatComesAsOthersAreAskedIsNotAskedForAgain"},
	},
	{
		"a nested hold of a quorum has no smaller token", "statement.go",
		"		h.hold.Session.Raise(instant)\n", "",
		[]string{"TestQuorumTokenOfANestedHoldIsNoSmallerThoughClocksDiffer"},
	},
	{
		"one attempt waits for what it gives back no longer than it asks", "internal/quorum/majority.go",
		"		patience := h.lock.patience()\n", "		patience := time.Hour\n",
		[]string{"TestOneAttemptEndsThoughWhatItHadDoesNot"},
	},
	{
		"a candidate that is cut short in a pause says so", "election.go",
		"return lockError(l.Name(), explain(ctx, errors.Unwrap(err)))", "return err",
		[]string{"TestElectionThatEndsInAPauseSaysWhy"},
	},
	{
		"a candidate whose client closes in a pause says so", "election.go",
		"return lockError(l.Name(), ErrClosed)", "return err",
		[]string{"TestElectionThatEndsInAPauseSaysWhy"},
	},
	{
		"a token that a majority has stays", "internal/quorum/keep.go",
		"have[m.token] == need", "false",
		[]string{"TestATokenThatAMajorityHasStays"},
	},
	{
		"a primary with a larger token is told of the hold's", "internal/room/hold.go",
		"{ s.token = instant }", "{ s.token = max(s.token, instant) }",
		[]string{"TestQuorumTokenOfANestedHoldIsTheOuterOnesThoughAnAheadPrimaryCameLater"},
	},
	{
		"a token that is raised is an instant", "statement.go",
		"h.hold.Session.Raise(instant)", "h.hold.Session.Raise(token)",
		[]string{"TestQuorumTokenOfANestedHoldIsTheOuterOnesWhateverTheDate", "TestQuorumTokenOfANestedHoldIsNoSmallerThoughClocksDiffer"},
	},
	{
		"a quorum's longest hold is the majority's", "internal/quorum/majority.go",
		"case h.until.IsZero() || until.Before(h.until):", "case true:",
		[]string{"TestTheLongestHoldIsTheMajoritys"},
	},
	{
		"a quorum's longest hold begins with the hold", "internal/quorum/gather.go",
		"	h := l.begin(ctx)\n	defer", "	h, began := l.begin(ctx), time.Now()\n	defer func() {\n		if h.until = began.Add(l.MaxHold + l.TTL); l.MaxHold == 0 {\n			h.until = time.Time{}\n		}\n	}()\n	defer",
		[]string{"TestTheLongestHoldBeginsWithTheHold"},
	},
	{
		"what is left of a lost majority goes back", "internal/quorum/keep.go",
		"if errors.Is(h.Err(), l.Errors.Lost) {", "if errors.Is(h.Err(), l.Errors.Lost) && false {",
		[]string{"TestTheLongestHoldIsTheMajoritys"},
	},
	{
		"too few answers of a quorum are no contention", "internal/quorum/gather.go",
		"	case answered >= need:\n", "	default:\n",
		[]string{"TestQuorumOutlivesAMinority"},
	},
	{
		"a quorum's nested call sees its own hold", "quorum.go",
		"owner, said := l.caller(ctx)", "owner, said := l.caller(context.Background())",
		[]string{"TestQuorumOfANamedOwnerReenters"},
	},
	{
		"a quorum's call under a done context says so first", "context.go",
		"	case ctx.Err() != nil:\n		return \"\", lockError(l.name, unasked(ctx))\n", "",
		[]string{"TestQuorumCallUnderADoneContextSaysSoFirst"},
	},
	{
		"a quorum whose clients are closed says so", "internal/quorum/majority.go",
		"	if open < h.lock.need() {\n", "	if false {\n",
		[]string{"TestQuorumWithClosedClients"},
	},
	{
		"a lost hold of a quorum occupies its handle", "errors.go",
		"if !is {", "if is || !is {",
		[]string{"TestLostQuorumHoldOccupiesItsHandle"},
	},
	{
		"a quorum's handle that is granted the lock again has lost its older hold", "errors.go",
		"other.majority.Lose()", "",
		[]string{"TestAQuorumLockHasNoSecondHoldBeforeTheFirstIsUnlocked", "TestUnlockOfALostQuorumHoldLeavesTheNextHoldOfItsHandle"},
	},
	{
		"a quorum's grant for an occupied handle is given back", "quorum.go",
		"err == nil || !l.register.Remove(h)", "true || err == nil",
		[]string{"TestQuorumGrantForAnOccupiedHandleIsGivenBack"},
	},
	{
		"an occupied handle of a closed quorum is closed", "errors.go",
		"case 2*closed >= len(l.majority.Primaries):", "case false:",
		[]string{"TestOccupiedQuorumWithClosedClientsIsClosed"},
	},
	{
		"a quorum knows whose client was closed", "internal/quorum/keep.go",
		"why := m.hold.Err()", "why := m.err",
		[]string{"TestTheLossByAClientThatWasClosedWhileItWasAskedSaysSo"},
	},
	{
		"a primary of a quorum that no longer had the hold has not released it", "internal/quorum/majority.go",
		"				mayHave--\n", "				held++\n",
		[]string{"TestAReleaseIsOfALossWhereNoMajorityHadIt", "TestQuorumReleaseSaysThatItsMajorityWasGone"},
	},
	{
		"a quorum's release hears whether a majority had it", "internal/quorum/majority.go",
		"held < need && mayHave >= need", "held < 0",
		[]string{"TestAReleaseIsOfALossWhereNoMajorityHadIt", "TestQuorumReleaseHearsWhetherItsMajorityWasGone"},
	},
	{
		"what primaries say at the end of a wait is heard", "internal/quorum/gather.go",
		"wait+h.lock.patience()", "max(wait, h.lock.patience())",
		[]string{"TestAMajorityThatIsTakenAfterTheQueueIsContention"},
	},
}
