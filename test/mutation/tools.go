package mutation

// dashboardRules are those of relockweb: it reads, shares its reads, and lets only those force
// who may.
var dashboardRules = []Rule{
	{
		"who asks about another lock does not wait for the rest", "relockweb reads.look",
		"resting = min(resting, later(r.ended.Add(restWithin), r.early.Add(-mostEarly)).Sub(now))", "_, _ = restWithin, mostEarly",
		[]string{"TestLockOfWhichNothingIsKnownIsReadSoon"},
	},
	{
		"those who ask about many locks wait for the rest", "relockweb reads.run",
		"r.early = later(r.early, end).Add(earlyRest * worked)", "_ = earlyRest",
		[]string{"TestVisitorsOfManyLocksCostNoMoreThanOthers"},
	},
	{
		"an early read does not end the rest of another", "relockweb reads.run",
		"free = later(free, r.free)", "",
		[]string{"TestVisitorsOfManyLocksCostNoMoreThanOthers"},
	},
	{
		"a dashboard is read-only unless force is allowed", "relockweb Handler",
		"s := &site{c: c, every: defaultEvery}", "s := &site{c: c, every: defaultEvery, may: func(*http.Request) bool { return true }}",
		[]string{"TestDashboardIsReadOnlyUnlessForceIsAllowed"},
	},
	{
		"force is for those who may", "relockweb site.forcible",
		"if !s.may(r) {", "if !s.may(r) && false {",
		[]string{"TestForceIsForThoseWhoMay"},
	},
	{
		"force comes from a page of the same origin", "relockweb sameOrigin",
		"if err := http.NewCrossOriginProtection().Check(r); err != nil || !told {", "if !told {",
		[]string{"TestForceRefusesWhatNoPageOfItsOwnSent"},
	},
	{
		"force comes from a browser that says where from", "relockweb sameOrigin",
		"err != nil || !told {", "err != nil || false && !told {",
		[]string{"TestForceRefusesWhatNoPageOfItsOwnSent"},
	},
	{
		"force is confirmed", "relockweb chosen",
		`err == nil && r.PostFormValue("confirm") == "yes"`, "err == nil",
		[]string{"TestForceWantsToBeConfirmed"},
	},
	{
		"force spares a later grant", "relockweb site.endThese",
		"if !tokens[h.Token] {", "if false && !tokens[h.Token] {",
		[]string{"TestForceSparesWhoHoldsSince", "TestForceEndsTheChosenHolderAlone"},
	},
	{
		"force spares a grant of the last moment", "relockweb site.endThese",
		"l.ForceUnlockHolder(ctx, h)", "l.ForceUnlock(ctx)",
		[]string{"TestForceSparesAGrantThatBeginsInTheLastMoment", "TestForceEndsTheChosenHolderAlone"},
	},
	{
		"force spares the rest of a later grant", "relockweb site.endThese",
		"return seam.ForceRest(ctx, l, rests)", "return l.ForceUnlock(ctx)",
		[]string{"TestForceSparesTheRestOfALaterGrant"},
	},
	{
		"force says that what was shown has ended", "relockweb site.end",
		"case !removed && len(now.Holders) > 0:", "case !removed:",
		[]string{"TestForceSaysThatWhatWasShownHasEnded"},
	},
	{
		"who has forced is led back under every prefix", "relockweb site.force",
		`w.Header().Set("Location", "lock?name="`, `w.Header().Set("Location", "/lock?name="`,
		[]string{"TestForceLeadsBackToTheLockUnderAPrefix"},
	},
	{
		"Match hides locks by their addresses too", "relockweb site.shows",
		"!s.allowed.Name(name)", "false && !s.allowed.Name(name)",
		[]string{"TestMatchHidesOtherLocks"},
	},
	{
		"Match hides locks of the list", "relockweb site.readList",
		"Locks(ctx, s.match)", `Locks(ctx, "")`,
		[]string{"TestMatchHidesOtherLocks"},
	},
	{
		"Hosts refuses other hosts", "relockweb site.hosted",
		"if _, err := netip.ParseAddr(host); s.hosts != nil", "if _, err := netip.ParseAddr(host); false && s.hosts != nil",
		[]string{"TestOnlyTheHostsThatAreNamedAreServed", "TestHostsWithoutANameAreAddresses"},
	},
	{
		"the case and the port of a host do not matter", "relockweb Hosts",
		"s.hosts[hostname(name)] = true", "s.hosts[name] = true",
		[]string{"TestOnlyTheHostsThatAreNamedAreServed"},
	},
	{
		"names are escaped", "relockweb import",
		`"html/template"`, `"text/template"`,
		[]string{"TestHostileNamesAreTextAndNothingElse"},
	},
	{
		"every answer has a policy", "relockweb guarded",
		`head.Set("Content-Security-Policy", policy)`, "",
		[]string{"TestEveryAnswerHasAStrictPolicy"},
	},
	{
		"all who look share one read", "relockweb reads.look",
		"case known && one.ok && now.Sub(one.at) < r.every,", "case",
		[]string{"TestAllWhoLookShareOneRead"},
	},
	{
		"a failed read is kept until its retry is due", "relockweb reads.look",
		"known && one.ok && now.Sub", "known && now.Sub",
		[]string{"TestAFailedReadIsMadeAgainWithinSecondsThoughDataMayBeOld"},
	},
	{
		"a page of a failed read renews itself in seconds", "relockweb show",
		"if p.failed() {", "if false && p.failed() {",
		[]string{"TestAFailedReadIsMadeAgainWithinSecondsThoughDataMayBeOld"},
	},
	{
		"a read that failed delays the next by seconds", "relockweb reads.pause",
		"return rest*worked + retryLater", "return rest * worked",
		[]string{"TestReadsThatFailComeEveryFiveSeconds"},
	},
	{
		"the dashboard says when what it shows is old", "relockweb page.age",
		"p.Stale = since(", "_ = since(",
		[]string{"TestOldDataAreMarked"},
	},
	{
		"grants of two names are told apart on the dashboard", "relockweb remember",
		"id{one.Name, g.token}", "id{token: g.token}",
		[]string{"TestGrantsOfTwoNamesWithOneTokenAreToldApart"},
	},
	{
		"names that differ look different", "relockweb visible",
		"strings.TrimSpace(text) != text", "false",
		[]string{"TestNamesThatDifferLookDifferent"},
	},
	{
		"reads that take long come seldom", "relockweb reads.pause",
		"return rest * worked", "return worked",
		[]string{"TestReadsThatTakeLongComeSeldom"},
	},
	{
		"a read that failed rests for what Redis answered", "relockweb reads.pause",
		"return rest*worked + retrySoon", "return retrySoon",
		[]string{"TestAReadThatFindsNothingInItsTimeRestsAsOthersDo"},
	},
	{
		"the dashboard does not rest for an outage", "relockweb site.readList",
		"silent += quiet", "",
		[]string{"TestAnOutageThatBeginsWithinAReadIsSeenToEndWithinSeconds"},
	},
	{
		"before a server fell silent it may have answered for long", "relockweb silence",
		"return min(s.Silence(), most)", "return most",
		[]string{"TestAReadThatFindsNothingInItsTimeRestsAsOthersDo"},
	},
	{
		"a lock that was not told of when the context ended is unavailable", ". scan.look",
		"case ended != nil && errs[i] != nil:", "case false:",
		[]string{"TestLocksWhoseContextEndsInASilenceTellsOfIt"},
	},
	{
		"a lease that rose was renewed", "relockweb remember",
		"known && g.leaseMS <= was.leaseMS", "known && g.leaseMS <= was.longest",
		[]string{"TestAHoldWithALongerNestedOneIsNotMarkedForEver"},
	},
	{
		"a ticket says nothing about the lease of who resumes it", "relockweb remember",
		"if !g.detached {", "if true {",
		[]string{"TestAHoldThatWasResumedIsNotMarkedAsOneThatIsNotRenewed", "TestATicketIsNotMarkedAsNotRenewed"},
	},
	{
		"a lock's own page has the marks of the list", "relockweb site.readLock",
		"remember(found, []lock{last.Lock})", "",
		[]string{"TestALocksOwnPageMarksALeaseThatIsNotRenewed"},
	},
	{
		"a name with what nobody sees is escaped", "relockweb visible",
		"|| blank(r)", "",
		[]string{"TestNamesWithCharactersThatNobodySeesLookDifferent"},
	},
	{
		"a name in quotes is quoted", "relockweb visible",
		"|| strings.HasPrefix(text, `\"`)", "",
		[]string{"TestANameInQuotesIsNoOtherNameWithItsCharactersEscaped"},
	},
	{
		"the list is sorted by the lease that is left", "relockweb sorted",
		"cmp.Compare(a.leaseLeft, b.leaseLeft)", "cmp.Compare(b.leaseLeft, a.leaseLeft)",
		[]string{"TestListIsOrderedAsAsked"},
	},
	{
		"a page renews itself each quarter of a second at most", "relockweb minEvery",
		"250 * time.Millisecond", "50 * time.Millisecond",
		[]string{"TestBadOptionIsToldByEveryAnswer"},
	},
	{
		"the list shows five holders of a lock", "relockweb fewOf",
		"5", "50",
		[]string{"TestAListShowsFiveHoldersOfALockAndCountsAll"},
	},
	{
		"the list judges a lock by all of its holders", "relockweb lockOf",
		"for i, h := range info.Holders {", "for i, h := range info.Holders[:min(len(info.Holders), some)] {",
		[]string{"TestAHolderThatTheListDoesNotShowNeedsAttentionToo"},
	},
	{
		"the numbers of the dashboard count all holders", "relockweb lockOf",
		"HolderCount: len(info.Holders)", "HolderCount: min(len(info.Holders), some)",
		[]string{"TestAListShowsFiveHoldersOfALockAndCountsAll"},
	},
	{
		"a page shows a thousand locks", "relockweb site.listPage",
		"l.Locks = l.Locks[:mostRows]", "",
		[]string{"TestAListHasTenThousandLocksAndAPageAThousand"},
	},
	{
		"a list says that there are more locks", "relockweb site.readList",
		"l.More = true", "",
		[]string{"TestAListHasTenThousandLocksAndAPageAThousand"},
	},
	{
		"a list is in the order of its names", "relockweb site.readList",
		"slices.SortFunc(l.Locks, $less)", "",
		[]string{"TestPrefixFindsEveryNameInWhateverOrderRedisTellsOfThem"},
	},
	{
		"a queue of nine is not marked", "relockweb longQueue",
		"10", "9",
		[]string{"TestWhatNeedsAttentionComesFirstAndIsMarked"},
	},
	{
		"a hold of less than an hour is not marked", "relockweb longHeld",
		"time.Hour", "59 * time.Minute",
		[]string{"TestWhatNeedsAttentionComesFirstAndIsMarked"},
	},
	{
		"without a script a page renews itself each ten seconds", "relockweb/static/layout.html",
		`content="10"`, `content="25"`,
		[]string{"TestPageRenewsItselfWithoutAScriptToo"},
	},
	{
		"a writer in the order of arrival is one", "relockweb mode",
		`|| kind == "fair rw"`, "",
		[]string{"TestWritersAreToldApartWhateverTheirOrder"},
	},
	{
		"a lock of which nothing is known is read within 400 ms", "relockweb restWithin",
		"patience / 2", "patience * 3 / 4",
		[]string{"TestLockOfWhichNothingIsKnownIsReadSoon"},
	},
	{
		"after a read that failed Redis is asked again after 2 s", "relockweb retrySoon",
		"2 * time.Second", "4 * time.Second",
		[]string{"TestOldDataSayThatRedisIsSilent"},
	},
}

// commandRules are those of the command.
var commandRules = []Rule{
	{
		"unlock of a holder goes by the token", "cmd/relock tool.unlockHolder",
		"which.Token != 0 && h.Token != which.Token ||", "",
		[]string{"TestUnlockOfAHolderSparesALaterOne", "TestUnlockOfOneHolderLeavesTheOthers"},
	},
	{
		"unlock of a holder goes by the owner", "cmd/relock tool.unlockHolder",
		`|| which.Owner != "" && h.Owner != which.Owner`, "",
		[]string{"TestUnlockOfAHolderSparesALaterOne", "TestUnlockOfOneHolderLeavesTheOthers"},
	},
	{
		"a command whose lock is lost is not continued", "cmd/relock child.goOn",
		"c.heed(); if c.hold.Err() != nil { c.signal(syscall.SIGTERM); return }", "c.heed()",
		[]string{"TestLockThatIsLostWhileStoppedEndsTheCommand"},
	},
	{
		"a command that stops when its lock is lost is ended", "cmd/relock child.suspend",
		"if c.hold.Err() != nil { c.stopped = true; c.signal(syscall.SIGTERM); return nil }", "",
		[]string{"TestLockThatIsLostWhileStoppedEndsTheCommand"},
	},
	{
		"Ctrl-C ends what runs relock", "cmd/relock main",
		"t.interrupt.die()", "",
		[]string{"TestCtrlCEndsTheScriptToo"},
	},
	{
		"Ctrl-C ends what runs beside relock", "cmd/relock interrupt.die",
		"to = 0", "_ = to",
		[]string{"TestCtrlCEndsTheScriptToo"},
	},
	{
		"a program that reads of relock keeps the terminal", "cmd/relock terminalOf",
		"&& (!hearsStops || !isPipe(out))", "",
		[]string{"TestAProgramBesideRelockGetsTheTerminal"},
	},
	{
		"a command that cannot be started leaves the terminal", "cmd/relock terminal.reclaim",
		"from = t.owner()", "",
		[]string{"TestACommandThatCannotBeStartedLeavesTheTerminal"},
	},
	{
		"a command gets the terminal when it needs it", "cmd/relock child.suspend",
		"case needs && !c.asked && (c.tty.of(c.pid) || c.tty.of(syscall.Getpgrp())):", "case false:",
		[]string{"TestACommandGetsTheTerminalThoughItsInputIsAPipe"},
	},
	{
		"a loss is told once", "cmd/relock child.tellLoss",
		"c.told = true", "",
		[]string{"TestLossIsToldOnceAndAtOnce"},
	},
	{
		"who has gone and reads nothing ends no command", "cmd/relock main",
		"signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)", "signal.Reset(syscall.SIGPIPE)",
		[]string{"TestALossStopsTheCommandThoughNobodyReadsOfIt", "TestWhoHasGoneChangesNoExitStatus"},
	},
	{
		"the command gets signals whose default is not changed", "cmd/relock main",
		"signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)", "signal.Ignore(syscall.SIGPIPE)",
		[]string{"TestWhoHasGoneChangesNoExitStatus"},
	},
	{
		"who does not read of a loss holds up nothing", "cmd/relock child.tellLoss",
		"go func() { defer close(said)", "func() { defer close(said)",
		[]string{"TestALossStopsTheCommandThoughNobodyReadsOfIt"},
	},
	{
		"who does not read of a loss is told nothing else", "cmd/relock child.finishTelling",
		"c.err = io.Discard", "_ = io.Discard",
		[]string{"TestALossStopsTheCommandThoughNobodyReadsOfIt"},
	},
	{
		"top ends when nobody reads it", "cmd/relock tool.top",
		"signal.Reset(syscall.SIGPIPE)", "_ = syscall.SIGPIPE",
		[]string{"TestTopEndsWhenNobodyReadsIt"},
	},
	{
		"what is left of a group hears of signals", "cmd/relock child.awaitGroup",
		"case <-poll.C: case s := <-signals:", "case <-poll.C: case s := <-(<-chan os.Signal)(nil):",
		[]string{"TestSignalIsPassedOnToWhatIsLeftAfterALoss"},
	},
	{
		"a forced unlock that is refused halfway is told", ". forceHolders",
		"case err != nil:", "case false:",
		[]string{"TestForceUnlockThatIsRefusedHalfwaySaysBoth"},
	},
	{
		"unlock names nobody whom it has not removed", ". forceHolders",
		"case one: ended.Holders", "default: ended.Holders",
		[]string{"TestForcedUnlockNamesWhomItRemovedThoughTheLockPassesOn"},
	},
	{
		"a wait bounds its first answer", "cmd/relock patience.next",
		"min(p.left(began), reachable)", "reachable",
		[]string{"TestSilentRedisExits69WithinTheWait"},
	},
	{
		"a wait bounds every answer", "cmd/relock patience.ask",
		"if p.bounded { var cancel", "if false && p.bounded { var cancel",
		[]string{"TestWaitEndsThoughRedisFallsSilentMeanwhile"},
	},
	{
		"a verb that a signal ends as it connects ends as ever", "cmd/relock tool.failUnlessStopped",
		"case ctx.Err() != nil: return 0", "",
		[]string{"TestSignalBeforeTheFirstAnswerIsNoFailure"},
	},
	{
		"a wait that a signal ends as it connects says which", "cmd/relock tool.failUnlessStopped",
		"case is: return t.fail(s)", "case is && false: return t.fail(s)",
		[]string{"TestSignalBeforeTheFirstAnswerIsNoFailure"},
	},
	{
		"nobody waits to tell a Redis of a loss", "cmd/relock job.under",
		"l.lost = errors.Is(released, relock.ErrLost)", "l.lost = false",
		[]string{"TestLossIsToldOnceAndAtOnce"},
	},
	{
		"nor does a run of an interval", "cmd/relock job.once",
		"l.lost = errors.Is(err, relock.ErrLost)", "l.lost = false",
		[]string{"TestLossIsToldOnceAndAtOnce"},
	},
	{
		"a run waits for no run that it is a part of", "cmd/relock job.within",
		"return !slices.Contains(outer, h.Token)", "return h.Token > 0",
		[]string{"TestRunInsideARunIsToldThatItWouldWaitForEver"},
	},
	{
		"a run waits for no permit of a run that it is a part of", "cmd/relock job.within",
		"len(ours) < j.runs)", "len(ours) > 0)",
		[]string{"TestRunInsideOfRunsThatHaveAllPermitsIsRefused"},
	},
	{
		"a run waits for the permits of others", "cmd/relock job.within",
		"return !slices.Contains(outer, h.Token)", "return false",
		[]string{"TestRunInsideOfARunWaitsForAPermitOfAnother"},
	},
	{
		"a run of an owner that holds needs no permit", "cmd/relock job.within",
		"slices.ContainsFunc(info.Holders, j.reenters)", "slices.ContainsFunc(ours, j.reenters)",
		[]string{"TestRunInsideOfARunWaitsForAPermitOfAnother"},
	},
	{
		"a reader waits for no writer that waits for it", "cmd/relock job.within",
		"!errors.Is(err, relock.ErrNotAcquired) {", "err == nil || true {",
		[]string{"TestReaderInsideOfAReaderIsRefusedWhereAWriterWaits"},
	},
	{
		"a run knows every run that it is a part of", "cmd/relock job.environ",
		"append(outerRuns(j.env), oneRun(j.name, token))", "[]string{oneRun(j.name, token)}",
		[]string{"TestRunInsideOfSeveralIsRefusedTheNameOfEach"},
	},
	{
		"a run is told apart whatever its name", "cmd/relock oneRun",
		`":" + url.QueryEscape(name)`, `":" + name`,
		[]string{"TestRunInsideOfSeveralIsRefusedTheNameOfEach"},
	},
	{
		"an older relock's run is one too", "cmd/relock outerRuns",
		"err == nil && !slices.Contains(all, innermost)", "err != nil && !slices.Contains(all, innermost)",
		[]string{"TestRunInsideOfAnOlderRelocksRunIsRefusedItsName"},
	},
	{
		"an owner that reads is not told to try again", "cmd/relock statusOf",
		"errors.Is(err, relock.ErrUpgrade),", "",
		[]string{"TestOwnerThatReadsAndIsToWriteExits64"},
	},
	{
		"seconds are what they say", "cmd/relock span.Set",
		"math.Round(n*float64(time.Second))", "math.Trunc(n*float64(time.Second))",
		[]string{"TestSecondsWithoutAUnitAreWhatTheySay"},
	},
	{
		"no error of a parser is passed on", "cmd/relock server.dial",
		"return nil, a.refused(err)", "return nil, err",
		[]string{"TestNoErrorShowsAPartOfAPassword"},
	},
	{
		"what stands behind a slash of a password is no path", "cmd/relock parseAddress",
		"if behind ||", "if false && behind ||",
		[]string{"TestNoErrorShowsAPartOfAPassword"},
	},
	{
		"what stands behind a # of a password is nothing to leave out", "cmd/relock parseAddress",
		`|| strings.Contains(raw, "#") {`, "{",
		[]string{"TestNoErrorShowsAPartOfAPassword"},
	},
	{
		"what go-redis leaves out is refused", "cmd/relock parseAddress",
		"|| malformed != nil ||", "|| malformed != nil && false ||",
		[]string{"TestNoErrorShowsAPartOfAPassword"},
	},
	{
		"a shell runs no name that it completes", "cmd/relock bashLine.rest",
		"quoted.WriteByte('\\\\')", "_ = quoted",
		[]string{"TestBashGetsWordsAsItDividesThem", "TestShellsCompleteVerbsFlagsAndNames"},
	},
	{
		"top rests", "cmd/relock restAfter",
		"max(every-took, 19*took)", "every-took",
		[]string{"TestTopRestsNineteenTimesAsLongAsItLooks"},
	},
	{
		"a page is for hosts that are known", "cmd/relock view.options",
		"relockweb.Hosts(v.hosts...), ", "",
		[]string{"TestServeShowsTheLocksUntilItIsTerminated"},
	},
}
