package mutation

// operatorRules are those of the command: what it says, how it ends, and what it leaves behind.
var operatorRules = []Rule{
	{
		"a full disk is a failure", "cmd/relock tool.written",
		"if status != 0 || t.unsaid == nil {", "if true {",
		[]string{"TestAFullDiskIsAFailure"},
	},
	{
		"a reader that has gone is none", "cmd/relock tool.heard",
		"&& !errors.Is(err, syscall.EPIPE)", "",
		[]string{"TestWhoHasGoneChangesNoExitStatus"},
	},
	{
		"a failure by somebody's hold says whose", "cmd/relock failureOf",
		"if taken, is := errors.AsType[takenError](err); is {", "if taken, is := errors.AsType[takenError](err); is && false {",
		[]string{"TestAWaitThatEndsSaysWhoHolds"},
	},
	{
		"a wait that ends asks who holds", "cmd/relock job.acquire",
		"return hold, j.taken(ctx, lock, err)", "return hold, err",
		[]string{"TestAWaitThatEndsSaysWhoHolds"},
	},
	{
		"top goes on though nothing but a key that cannot be read is there", "cmd/relock tool.top",
		"case unread && len(locks) == 0:", "case (unread || err != nil) && len(locks) == 0:",
		[]string{"TestTopGoesOnThoughNothingButAKeyThatCannotBeReadIsThere"},
	},
	{
		"a name with what nobody sees is escaped at a terminal", "cmd/relock shown",
		"if strings.ContainsFunc(text, blank) {", "if false && blank(0) {",
		[]string{"TestNamesWithWhatNobodySeesAreEscaped"},
	},
	{
		"the address of a client by Sentinel is not dialled", "cmd/relock server.reason",
		"bad != nil && ", "bad != nil && false && ",
		[]string{"TestTheReasonOfASilenceBySentinelNamesNoPlaceholder"},
	},
	{
		"the doctor names the Sentinels that it was given", "cmd/relock doctor.examine",
		"c.addr = d.link.addr", "",
		[]string{"TestCommandsWorkBySentinel"},
	},
	{
		"a wrong flag is told in JSON if -json follows", "cmd/relock verb.do",
		"|| wantsJSON(append([]string{v.name}, args...))", "",
		[]string{"TestAWrongFlagIsToldInJSONWhereverJSONStands"},
	},
	{
		"a wrong flag before the command is told in JSON", "cmd/relock tool.main",
		"t.json = wantsJSON(given)", "_ = wantsJSON(given)",
		[]string{"TestAWrongFlagIsToldInJSONWhereverJSONStands"},
	},
	{
		"a command's -json is its own", "cmd/relock wantsJSON",
		"case names == 0: return wanted", "case names == 0:",
		[]string{"TestAWrongFlagIsToldInJSONWhereverJSONStands"},
	},
	{
		"a hold whose release is not confirmed does not say that it is released", "cmd/relock tool.hold",
		"if j.unsure != nil {", "if false {",
		[]string{"TestAHoldWhoseReleaseIsNotConfirmedDoesNotSayReleased"},
	},
	{
		"a name may begin with a dash", "cmd/relock divide",
		"missing := min(names-len(words), len(args)-1)", "missing := 0",
		[]string{"TestANameMayBeginWithADash"},
	},
	{
		"a second dash dash may stand before the command", "cmd/relock divide",
		"if missing > 0 && len(command) > 0", "if false && len(command) > 0",
		[]string{"TestANameMayBeginWithADash"},
	},
	{
		"an interval of nothing is refused", "cmd/relock positive.Set",
		"err != nil || *p > 0 {", "err != nil || *p >= 0 {",
		[]string{"TestAValueOfNothingIsRefused"},
	},
	{
		"a number lies within its bounds", "cmd/relock bounded.Set",
		"*n.n < n.least || *n.n > n.most", "false",
		[]string{"TestAValueOfNothingIsRefused"},
	},
	{
		"help is there before the command too", "cmd/relock common",
		`if errors.Is(err, flag.ErrHelp) { return []string{"help"}, nil }`, "",
		[]string{"TestHelpAndVersionAreThereInEveryForm"},
	},
	{
		"a run that is skipped says so", "cmd/relock job.once",
		"j.sayWhy(ctx, l)", "",
		[]string{"TestASkippedRunSaysWhy"},
	},
	{
		"a run that is skipped ends as it is told", "cmd/relock job.once",
		"return j.unrun, nil", "return 0, nil",
		[]string{"TestASkippedRunSaysWhy"},
	},
	{
		"what others leave behind is reaped", "cmd/relock child.wait",
		"who = -1", "_ = who",
		[]string{"TestOrphansOfAContainerAreReaped"},
	},
	{
		"zombies of others hold up no end", "cmd/relock child.anyLeft",
		"&& (!closely || !onlyZombies(c.pid))", "",
		[]string{"TestZombiesHoldUpNoEndAfterALoss"},
	},
	{
		"the whole group is killed", "cmd/relock child.watch",
		"kill = nil; _ = syscall.Kill(-c.pid, syscall.SIGKILL); case ws", "kill = nil; _ = syscall.Kill(c.pid, syscall.SIGKILL); case ws",
		[]string{"TestTheWholeGroupIsKilledAfterTheGrace"},
	},
	{
		"a signal ends the last wait for a silent Redis", "cmd/relock link.hurry",
		"case <-time.After(hasty):", "case <-time.After(time.Hour):",
		[]string{"TestSignalEndsTheLastWaitForASilentRedis"},
	},
	{
		"TLS is named where it is missing", "cmd/relock server.reason",
		"config != nil {", "false {",
		[]string{"TestUnreachableRedisIsToldWithItsReason"},
	},
	{
		"the page is this machine's by default", "cmd/relock view.flags",
		`"listen", "127.0.0.1:7365", "ADDR: address of the page (default 127.0.0.1:7365)"`, `"listen", ":7365", "ADDR: address of the page (default 127.0.0.1:7365)"`,
		[]string{"TestTheHelpSaysTheDefaults"},
	},
	{
		"the help says the lease that there is", "cmd/relock job.lockFlags",
		"\"ttl\", 30*time.Second", "\"ttl\", 20*time.Second",
		[]string{"TestTheHelpSaysTheDefaults"},
	},
	{
		"the help says the grace that there is", "cmd/relock job.flags",
		"\"grace\", 10*time.Second", "\"grace\", 5*time.Second",
		[]string{"TestTheHelpSaysTheDefaults"},
	},
	{
		"the prefix is taken from the environment", "cmd/relock server.flags",
		"cmp.Or(lookup(env, \"RELOCK_PREFIX\"), \"relock\")", "\"relock\"",
		[]string{"TestPrefixIsTakenFromTheEnvironment"},
	},
	{
		"each host that is named is served", "cmd/relock view.flags",
		"v.hosts = append(v.hosts, name)", "v.hosts = []string{name}",
		[]string{"TestServeAnswersForEachHostThatIsNamed"},
	},
	{
		"quiet is silent after a signal", "cmd/relock tool.fail",
		"|| status >= exitSignal", "",
		[]string{"TestQuietIsSilentAfterASignal"},
	},
	{
		"a port in use is no wrong argument", "cmd/relock view.open",
		"errors.Is(err, syscall.EADDRINUSE) ||", "",
		[]string{"TestAPortInUseIsNoWrongArgument"},
	},
	{
		"a wait says that Redis does not answer", "cmd/relock job.announce",
		"} else if ctx.Err() == nil {", "} else if false {",
		[]string{"TestAWaitSaysThatRedisDoesNotAnswer"},
	},
	{
		"an outage at the start is waited out", "cmd/relock server.reach",
		"if p.over(began) || ", "if true || ",
		[]string{"TestAnOutageForAllOfTheWaitExits69"},
	},
	{
		"a refusal that ends is waited out", "cmd/relock link.refuses",
		"&& !errors.Is(err, relock.ErrUnavailable)", "",
		[]string{"TestARefusalThatEndsIsWaitedOut"},
	},
	{
		"a refusal that lasts is not waited out", "cmd/relock server.reach",
		"|| l.refuses(ctx, o.name, err)", "",
		[]string{"TestARefusalThatLastsIsNotWaitedOut"},
	},
	{
		"an outage in the middle does not end a wait", "cmd/relock patience.awaitFree",
		"err != nil && !errors.Is(err, relock.ErrUnavailable)", "err != nil",
		[]string{"TestAnOutageInTheMiddleDoesNotEndAWait", "TestAnOutageInTheMiddleOfAWaitLastsNoLongerThanTheWait"},
	},
	{
		"a wait ends with its patience though Redis is silent", "cmd/relock patience.awaitFree",
		"|| p.over(began)", "|| err == nil && p.over(began)",
		[]string{"TestAnOutageInTheMiddleOfAWaitLastsNoLongerThanTheWait"},
	},
	{
		"a wait for the first answer says why it waits", "cmd/relock outage.say",
		"err = why()", "_ = why",
		[]string{"TestAnOutageAtTheStartIsWaitedOut"},
	},
	{
		"the end of a context ends the first question", "cmd/relock server.greet",
		"defer context.AfterFunc(ctx, func() { l.rdb.Close() })()", "",
		[]string{"TestTheEndOfAContextEndsTheFirstQuestion"},
	},
	{
		"quiet tells of an outage", "cmd/relock tool.sayUnanswered",
		"t.warn(", "t.note(",
		[]string{"TestQuietStillSaysThatRedisDoesNotAnswer"},
	},
	{
		"quiet says nothing of a holder", "cmd/relock job.sayWait",
		"if j.quiet {", "if false {",
		[]string{"TestQuietStillSaysThatRedisDoesNotAnswer"},
	},
	{
		"quiet tells of a release that is not confirmed", "cmd/relock job.do",
		"j.warn(", "j.note(",
		[]string{"TestQuietStillSaysThatAReleaseIsNotConfirmed"},
	},
	{
		"quiet tells of a release that an interval's run has not confirmed", "cmd/relock job.once",
		"case errors.Is(err, relock.ErrUnconfirmed): j.warn(", "case errors.Is(err, relock.ErrUnconfirmed): j.note(",
		[]string{"TestQuietStillSaysThatAReleaseIsNotConfirmed"},
	},
	{
		"nothing is said twice", "cmd/relock trimName",
		"lines = slices.DeleteFunc(", "_ = slices.DeleteFunc(slices.Clone(lines), func(string) bool { return true }); _ = slices.DeleteFunc(",
		[]string{"TestAComplaintIsOneLine"},
	},
	{
		"USR2 is passed on", "cmd/relock notify",
		", syscall.SIGUSR2", "",
		[]string{"TestSignalsArePassedOn"},
	},
	{
		"QUIT is passed on", "cmd/relock notify",
		", syscall.SIGQUIT", "",
		[]string{"TestSignalsArePassedOn"},
	},
	{
		"a signal is passed on to the group", "cmd/relock child.watch",
		"case s := <-signals: c.signal(s.(syscall.Signal))",
		"case s := <-signals: _ = syscall.Kill(c.pid, s.(syscall.Signal))",
		[]string{"TestSignalsArePassedOnToTheGroup"},
	},
	{
		"a command has a second to set its trap", "cmd/relock unready",
		"time.Second", "time.Second / 2",
		[]string{"TestCommandThatBeginsWhileOthersWaitIsNotSignalledAtOnce"},
	},
	{
		"the page is there for localhost", "relockweb Hosts",
		`s.hosts = map[string]bool{"localhost": true}`, "s.hosts = map[string]bool{}",
		[]string{"TestServeAnswersForEachHostThatIsNamed", "TestOnlyTheHostsThatAreNamedAreServed"},
	},
	{
		"ls shows what could be read", "cmd/relock tool.ls",
		"locks, _, err := lookAt(ctx, l, prefix)", "locks, _, err := lookAt(ctx, l, prefix); if err != nil { return err }",
		[]string{"TestLsShowsTheRestBesideAKeyThatCannotBeRead"},
	},
	{
		"ls sorts by names", "cmd/relock tool.ls",
		"slices.SortFunc(locks, $less)", "_ = slices.Clone(locks); _ = cmp.Compare[string]",
		[]string{"TestLsShowsLocksByTheirNames"},
	},
	{
		"a label is escaped in a list", "cmd/relock holding",
		"who := shown(cmp.Or(h.Label, h.Owner))", "who := cmp.Or(h.Label, h.Owner)",
		[]string{"TestLabelsAndOwnersAreEscapedInAList"},
	},
	{
		"what the demo leaves is gone after a quarter of an hour", "cmd/relock demoKeep",
		"time.Minute", "time.Hour",
		[]string{"TestDemoNoticesALostIncrement"},
	},
	{
		"a quiet wait says nothing", "cmd/relock freeWait.await",
		"case free && !w.quiet:", "case free:",
		[]string{"TestWaitEndsWhenTheLockIsFree"},
	},
	{
		"a wait asks five times a second", "cmd/relock freeEvery",
		"200 * time.Millisecond", "500 * time.Millisecond",
		[]string{"TestAWaitAsksFiveTimesASecond"},
	},
	{
		"a wait tells of a silent Redis each half minute", "cmd/relock noticeEvery",
		"30 * time.Second", "5 * time.Minute",
		[]string{"TestAWaitSaysEachHalfMinuteThatRedisDoesNotAnswer"},
	},
	{
		"a doctor that finds no Redis ends as all commands do", "cmd/relock tool.doctor",
		"return d.report() } return t.fail(err)", "return d.report() }; return t.failAs(exitFailed, err)",
		[]string{"TestUnreachableRedisExits69"},
	},
	{
		"the doctor warns of a way that takes more than 20 ms", "cmd/relock slow",
		"20 * time.Millisecond", "100 * time.Millisecond",
		[]string{"TestDoctorNamesTheTTLThatTheWayToRedisNeeds"},
	},
	{
		"a completion waits for a second", "cmd/relock namesWithin",
		"time.Second", "3 * time.Second",
		[]string{"TestSilentRedisHoldsUpNoCompletion"},
	},
}
