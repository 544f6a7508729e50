package mutation

// dashboardRules are those of relockweb: it reads, shares its reads, and lets only those force
// who may.
var dashboardRules = []Rule{
	{
		"who asks about another lock does not wait for the rest", "relockweb/reads.go",
		"resting = min(resting, r.ended.Add(restWithin).Sub(now))", "_ = restWithin",
		[]string{"TestLockOfWhichNothingIsKnownIsReadSoon"},
	},
	{
		"a dashboard is read-only unless force is allowed", "relockweb/handler.go",
		"s := &site{c: c, every: defaultEvery}", "s := &site{c: c, every: defaultEvery, may: func(*http.Request) bool { return true }}",
		[]string{"TestDashboardIsReadOnlyUnlessForceIsAllowed"},
	},
	{
		"force is for those who may", "relockweb/force.go",
		"if !s.may(r) {", "if !s.may(r) && false {",
		[]string{"TestForceIsForThoseWhoMay"},
	},
	{
		"force comes from a page of the same origin", "relockweb/force.go",
		"if err := http.NewCrossOriginProtection().Check(r); err != nil || !told {", "if !told {",
		[]string{"TestForceRefusesWhatNoPageOfItsOwnSent"},
	},
	{
		"force comes from a browser that says where from", "relockweb/force.go",
		"err != nil || !told {", "err != nil || false && !told {",
		[]string{"TestForceRefusesWhatNoPageOfItsOwnSent"},
	},
	{
		"force is confirmed", "relockweb/force.go",
		`err == nil && r.PostFormValue("confirm") == "yes"`, "err == nil",
		[]string{"TestForceWantsToBeConfirmed"},
	},
	{
		"force spares a later grant", "relockweb/force.go",
		"if !tokens[h.Token] {", "if false && !tokens[h.Token] {",
		[]string{"TestForceSparesWhoHoldsSince", "TestForceEndsTheChosenHolderAlone"},
	},
	{
		"force spares a grant of the last moment", "relockweb/force.go",
		"l.ForceUnlockHolder(ctx, h)", "l.ForceUnlock(ctx)",
		[]string{"TestForceSparesAGrantThatBeginsInTheLastMoment", "TestForceEndsTheChosenHolderAlone"},
	},
	{
		"force spares the rest of a later grant", "relockweb/force.go",
		"return seam.ForceRest(ctx, l, rests)", "return l.ForceUnlock(ctx)",
		[]string{"TestForceSparesTheRestOfALaterGrant"},
	},
	{
		"force says that what was shown has ended", "relockweb/force.go",
		"case !removed && len(now.Holders) > 0:", "case !removed:",
		[]string{"TestForceSaysThatWhatWasShownHasEnded"},
	},
	{
		"who has forced is led back under every prefix", "relockweb/force.go",
		`w.Header().Set("Location", "lock?name="`, `w.Header().Set("Location", "/lock?name="`,
		[]string{"TestForceLeadsBackToTheLockUnderAPrefix"},
	},
	{
		"Match hides locks by their addresses too", "relockweb/serve.go",
		"!s.allowed.Name(name)", "false && !s.allowed.Name(name)",
		[]string{"TestMatchHidesOtherLocks"},
	},
	{
		"Match hides locks of the list", "relockweb/listing.go",
		"Locks(ctx, s.match)", `Locks(ctx, "")`,
		[]string{"TestMatchHidesOtherLocks"},
	},
	{
		"names are escaped", "relockweb/page.go",
		`"html/template"`, `"text/template"`,
		[]string{"TestHostileNamesAreTextAndNothingElse"},
	},
	{
		"every answer has a policy", "relockweb/handler.go",
		`		head.Set("Content-Security-Policy", policy)
`, "",
		[]string{"TestEveryAnswerHasAStrictPolicy"},
	},
	{
		"all who look share one read", "relockweb/reads.go",
		"case known && now.Sub(one.at) < r.every, ", "case ",
		[]string{"TestAllWhoLookShareOneRead"},
	},
	{
		"a read that failed delays the next by seconds", "relockweb/reads.go",
		"	case ok:\n", "	case true:\n",
		[]string{"TestDashboardSeesThatRedisAnswersAgainWithinSeconds"},
	},
	{
		"the dashboard says when what it shows is old", "relockweb/attention.go",
		"p.Stale = since(", "_ = since(",
		[]string{"TestOldDataAreMarked"},
	},
	{
		"names that differ look different", "relockweb/attention.go",
		"strings.TrimSpace(text) == text", "true",
		[]string{"TestNamesThatDifferLookDifferent"},
	},
	{
		"reads that take long come seldom", "relockweb/reads.go",
		"return rest * took", "return took",
		[]string{"TestReadsThatTakeLongComeSeldom"},
	},
}

// commandRules are those of the command.
var commandRules = []Rule{
	{
		"unlock of a holder goes by the token", "cmd/relock/inspect.go",
		"which.Token != 0 && h.Token != which.Token || ", "",
		[]string{"TestUnlockOfAHolderSparesALaterOne", "TestUnlockOfOneHolderLeavesTheOthers"},
	},
	{
		"unlock of a holder goes by the owner", "cmd/relock/inspect.go",
		" || which.Owner != \"\" && h.Owner != which.Owner", "",
		[]string{"TestUnlockOfAHolderSparesALaterOne", "TestUnlockOfOneHolderLeavesTheOthers"},
	},
	{
		"a command whose lock is lost is not continued", "cmd/relock/supervise.go",
		"	c.heed()\n	if c.hold.Err() != nil {\n		c.signal(syscall.SIGTERM)\n		return\n	}\n", "	c.heed()\n",
		[]string{"TestLockThatIsLostWhileStoppedEndsTheCommand"},
	},
	{
		"a command that stops when its lock is lost is ended", "cmd/relock/supervise.go",
		"	if c.hold.Err() != nil {\n		c.stopped = true\n		c.signal(syscall.SIGTERM)\n		return nil\n	}\n", "",
		[]string{"TestLockThatIsLostWhileStoppedEndsTheCommand"},
	},
	{
		"a loss is told once", "cmd/relock/supervise.go",
		"	c.told = true\n", "",
		[]string{"TestLossIsToldOnceAndAtOnce"},
	},
	{
		"who has gone and reads nothing ends no command", "cmd/relock/main.go",
		"signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)", "signal.Reset(syscall.SIGPIPE)",
		[]string{"TestALossStopsTheCommandThoughNobodyReadsOfIt", "TestWhoHasGoneChangesNoExitStatus"},
	},
	{
		"the command gets signals whose default is not changed", "cmd/relock/main.go",
		"signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)", "signal.Ignore(syscall.SIGPIPE)",
		[]string{"TestWhoHasGoneChangesNoExitStatus"},
	},
	{
		"who does not read of a loss holds up nothing", "cmd/relock/supervise.go",
		"	go func() {\n		defer close(said)\n", "	func() {\n		defer close(said)\n",
		[]string{"TestALossStopsTheCommandThoughNobodyReadsOfIt"},
	},
	{
		"who does not read of a loss is told nothing else", "cmd/relock/supervise.go",
		"		c.err = io.Discard\n", "		_ = io.Discard\n",
		[]string{"TestALossStopsTheCommandThoughNobodyReadsOfIt"},
	},
	{
		"top ends when nobody reads it", "cmd/relock/list.go",
		"		signal.Reset(syscall.SIGPIPE) ", "		_ = syscall.SIGPIPE ",
		[]string{"TestTopEndsWhenNobodyReadsIt"},
	},
	{
		"what is left of a group hears of signals", "cmd/relock/supervise.go",
		"		case <-poll.C:\n		case s := <-signals:\n", "		case <-poll.C:\n		case s := <-(<-chan os.Signal)(nil):\n",
		[]string{"TestSignalIsPassedOnToWhatIsLeftAfterALoss"},
	},
	{
		"unlock names nobody whom it has not removed", "inspect.go",
		"		case one:\n			ended.Holders", "		default:\n			ended.Holders",
		[]string{"TestForcedUnlockNamesWhomItRemovedThoughTheLockPassesOn"},
	},
	{
		"a wait bounds its first answer", "cmd/relock/inspect.go",
		"		s.patience = p.first()\n", "",
		[]string{"TestSilentRedisExits69WithinTheWait"},
	},
	{
		"a wait bounds every answer", "cmd/relock/hold.go",
		"	if p.bounded {\n		var cancel", "	if false && p.bounded {\n		var cancel",
		[]string{"TestWaitEndsThoughRedisFallsSilentMeanwhile"},
	},
	{
		"who holds nothing waits for no last answer", "cmd/relock/inspect.go",
		"		l.lost = true ", "		l.lost = false ",
		[]string{"TestWaitEndsThoughRedisFallsSilentMeanwhile"},
	},
	{
		"a verb that a signal ends as it connects ends as ever", "cmd/relock/main.go",
		"	case ctx.Err() != nil:\n		return 0\n", "",
		[]string{"TestSignalBeforeTheFirstAnswerIsNoFailure"},
	},
	{
		"a wait that a signal ends as it connects says which", "cmd/relock/main.go",
		"	case is:\n		return t.fail(s)\n", "	case is && false:\n		return t.fail(s)\n",
		[]string{"TestSignalBeforeTheFirstAnswerIsNoFailure"},
	},
	{
		"nobody waits to tell a Redis of a loss", "cmd/relock/run.go",
		"	l.lost = errors.Is(released, relock.ErrLost) ", "	l.lost = false ",
		[]string{"TestLossIsToldOnceAndAtOnce"},
	},
	{
		"nor does a run of an interval", "cmd/relock/every.go",
		"	l.lost = errors.Is(err, relock.ErrLost) ", "	l.lost = false ",
		[]string{"TestLossIsToldOnceAndAtOnce"},
	},
	{
		"a run waits for no run that it is a part of", "cmd/relock/run.go",
		"return !slices.Contains(outer, h.Token)", "return h.Token > 0",
		[]string{"TestRunInsideARunIsToldThatItWouldWaitForEver"},
	},
	{
		"a run waits for no permit of a run that it is a part of", "cmd/relock/run.go",
		"len(ours) < j.runs)", "len(ours) > 0)",
		[]string{"TestRunInsideOfRunsThatHaveAllPermitsIsRefused"},
	},
	{
		"a run waits for the permits of others", "cmd/relock/run.go",
		"return !slices.Contains(outer, h.Token)", "return false",
		[]string{"TestRunInsideOfARunWaitsForAPermitOfAnother"},
	},
	{
		"a run of an owner that holds needs no permit", "cmd/relock/run.go",
		"slices.ContainsFunc(info.Holders, j.reenters)", "slices.ContainsFunc(ours, j.reenters)",
		[]string{"TestRunInsideOfARunWaitsForAPermitOfAnother"},
	},
	{
		"a reader waits for no writer that waits for it", "cmd/relock/run.go",
		"!errors.Is(err, relock.ErrNotAcquired) {", "err == nil || true {",
		[]string{"TestReaderInsideOfAReaderIsRefusedWhereAWriterWaits"},
	},
	{
		"a run knows every run that it is a part of", "cmd/relock/run.go",
		"append(outerRuns(j.env), oneRun(j.name, token))", "[]string{oneRun(j.name, token)}",
		[]string{"TestRunInsideOfSeveralIsRefusedTheNameOfEach"},
	},
	{
		"a run is told apart whatever its name", "cmd/relock/outer.go",
		`":" + url.QueryEscape(name)`, `":" + name`,
		[]string{"TestRunInsideOfSeveralIsRefusedTheNameOfEach"},
	},
	{
		"an older relock's run is one too", "cmd/relock/outer.go",
		"err == nil && !slices.Contains(all, innermost)", "err != nil && !slices.Contains(all, innermost)",
		[]string{"TestRunInsideOfAnOlderRelocksRunIsRefusedItsName"},
	},
	{
		"an owner that reads is not told to try again", "cmd/relock/connect.go",
		"errors.Is(err, relock.ErrUpgrade), ", "",
		[]string{"TestOwnerThatReadsAndIsToWriteExits64"},
	},
	{
		"seconds are what they say", "cmd/relock/flags.go",
		"math.Round(n*float64(time.Second))", "math.Trunc(n*float64(time.Second))",
		[]string{"TestSecondsWithoutAUnitAreWhatTheySay"},
	},
	{
		"no error of a parser is passed on", "cmd/relock/address.go",
		"return nil, a.refused(err)", "return nil, err",
		[]string{"TestNoErrorShowsAPartOfAPassword"},
	},
	{
		"what stands behind a slash of a password is no path", "cmd/relock/address.go",
		"if behind || ", "if false && behind || ",
		[]string{"TestNoErrorShowsAPartOfAPassword"},
	},
	{
		"what stands behind a # of a password is nothing to leave out", "cmd/relock/address.go",
		` || strings.Contains(raw, "#") {`, " {",
		[]string{"TestNoErrorShowsAPartOfAPassword"},
	},
	{
		"what go-redis leaves out is refused", "cmd/relock/address.go",
		" || malformed != nil ||", " || malformed != nil && false ||",
		[]string{"TestNoErrorShowsAPartOfAPassword"},
	},
	{
		"a shell runs no name that it completes", "cmd/relock/bash.go",
		"quoted.WriteByte('\\\\')", "_ = quoted",
		[]string{"TestBashGetsWordsAsItDividesThem", "TestShellsCompleteVerbsFlagsAndNames"},
	},
	{
		"top rests", "cmd/relock/list.go",
		"max(every-took, 19*took)", "every-took",
		[]string{"TestTopRestsNineteenTimesAsLongAsItLooks"},
	},
	{
		"a page is for hosts that are known", "cmd/relock/serve.go",
		"if !v.known(r.Host) {", "if false {",
		[]string{"TestServeShowsTheLocksUntilItIsTerminated"},
	},
}
