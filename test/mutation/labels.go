package mutation

// labelRules are those of what people are told: labels, the list of locks, and hooks.
var labelRules = []Rule{
	{
		"nobody waits long for a label to be stored", "internal/label/label.go",
		"firstWithin = 100 * time.Millisecond", "firstWithin = 10 * time.Second",
		[]string{"TestLabelsThatAreNotAnsweredHoldUpNobody"},
	},
	{
		"a label is stored on another connection than locks are asked for", "internal/label/label.go",
		"call.Apart = true", "call.Apart = false",
		[]string{"TestLabelsThatAreNotAnsweredHoldUpNobody"},
	},
	{
		"nor to be read", "internal/label/label.go",
		"readWithin = time.Second", "readWithin = time.Minute",
		[]string{"TestLabelsThatAreNotAnsweredHoldUpNobody"},
	},
	{
		"a label is not stored by each call", "internal/label/label.go",
		"int64(lease) <= b.lease.Load() && !now.Reached(*due)", "false",
		[]string{"TestLabelIsStoredOnceAndKept"},
	},
	{
		"a label is kept while its client is used", "watchdog.go",
		"\tc.labels.Keep(0, d.now)\n", "",
		[]string{"TestLabelIsStoredOnceAndKept", "TestLabelThatWasLostIsStoredAgain"},
	},
	{
		"a label lives as long as the longest lease", "internal/label/label.go",
		"life := time.Duration(b.lease.Load()) + 2*every", "life := 2 * every",
		[]string{"TestLabelOutlivesTheLeasesOfADeadProcess"},
	},
	{
		"a longer lease has the label stored again", "internal/label/label.go",
		"int64(lease) <= b.lease.Load() && !now", "!now",
		[]string{"TestLabelOutlivesTheLeasesOfADeadProcess"},
	},
	{
		"a server that may be another one is told the label", "watchdog.go",
		"\tc.labels.Doubt(now)\n", "",
		[]string{"TestLabelThatWasLostIsStoredAgain"},
	},
	{
		"a key of another type is left alone", "lua/introduce.lua",
		"redis.call('HDEL', KEYS[1], 'label')\n", "",
		[]string{"TestLabelLeavesAKeyOfAnotherTypeAlone"},
	},
	{
		"a label is of the longest lease", "inspect.go",
		"one.TTL, one.Label = h.TTL, h.Label", "one.TTL = h.TTL",
		[]string{"TestLabelsOfManyReadersAreOfTheirLongestLeases"},
	},
	{
		"held is since the grant", "internal/wire/inspect.go",
		"info.Now*1000-high", "info.Now*1000-high-1_000_000",
		[]string{"TestInfoTellsHolderAndWaiters", "TestHoldOfATicketHasNoLabel"},
	},
	{
		"what is free is not listed", "locks.go",
		"errs[i] == nil && len(info.Holders) == 0", "false && len(info.Holders) == 0",
		[]string{"TestLocksListsWhatIsInUse"},
	},
	{
		"a lock is listed once", "locks.go",
		"\t\t\ts.seen[sum] = struct{}{}\n", "",
		[]string{"TestLocksComeOnceThoughTheirKeysComeTwice"},
	},
	{
		"the list asks step by step", "locks.go",
		"len(locks) == locksPage", "len(locks) == 100_000",
		[]string{"TestLocksAsksStepByStep"},
	},
	{
		"the list ends with its context", "locks.go",
		"\tcase s.ctx.Err() != nil:\n\t\treturn ending.Of(s.ctx)\n", "",
		[]string{"TestLocksEndsWithItsContextAndItsClient"},
	},
	{
		"a list that is cut short says what was the matter", "locks.go",
		"return fmt.Errorf(\"%w; until then: %w\", ending.Of(s.ctx), failed(s.ctx, err, s.c.clock.Now(), began))", "_ = began\n\t\treturn ending.Of(s.ctx)",
		[]string{"TestInspectionThatIsCutShortSaysWhatWasTheMatterWithRedis"},
	},
	{
		"an inspection that is cut short says what was the matter", "inspect.go",
		"err = fmt.Errorf(\"%w; until then: %w\", ending.Of(ctx), failed(ctx, err, l.c.clock.Now(), began))", "_, err = began, ending.Of(ctx)",
		[]string{"TestInspectionThatIsCutShortSaysWhatWasTheMatterWithRedis"},
	},
	{
		"the list ends with its client", "locks.go",
		"\tcase s.c.ctx.Err() != nil:\n\t\treturn ErrClosed\n", "",
		[]string{"TestLocksEndsWithItsContextAndItsClient"},
	},
	{
		"a \\ in a class takes the meaning from what follows", "internal/key/match.go",
		"case from == `\\` && rest != \"\":", "case false:",
		[]string{"TestMatchIsThatOfRedis", "TestShortPatternsMatchAsInRedis"},
	},
	{
		"a range goes either way", "internal/key/match.go",
		"inSet(min(from, end)) + \"-\" + inSet(max(from, end))", "inSet(from) + \"-\" + inSet(end)",
		[]string{"TestMatchIsThatOfRedis", "TestShortPatternsMatchAsInRedis"},
	},
	{
		"a - that was escaped makes no range", "internal/key/match.go",
		"\t\treturn `\\-`\n", "\t\treturn `-`\n",
		[]string{"TestMatchIsThatOfRedis", "TestShortPatternsMatchAsInRedis"},
	},
	{
		"a ] may end a range", "internal/key/match.go",
		"&& end != \"\":", "&& end != \"\" && end != \"]\":",
		[]string{"TestMatchIsThatOfRedis", "TestShortPatternsMatchAsInRedis"},
	},
	{
		"a condition that nobody made says so", "errors.go",
		"\t\treturn errUnmadeCond\n", "\t\treturn nil\n",
		[]string{"TestEveryMethodOfAZeroValueSaysWhatIsWrong", "TestAConditionThatNobodyMadeSaysWhatToDo"},
	},
	{
		"a call that gave up is told of", "obtain.go",
		"\t\t\tw.gaveUpHook(err)\n", "",
		[]string{"TestGaveUpHookIsToldOfEachCallWithoutItsLock", "TestGaveUpHookIsToldOfTheLineAndOfClose"},
	},
	{
		"a renewal that failed is told of", "renew.go",
		"}, c.unrenewedHook(st, err))", "})",
		[]string{"TestRenewalFailedHookIsToldOfEachTry"},
	},
	{
		"a renewal of many that failed is told of", "renew.go",
		"tells = append(tells, c.unrenewedHook(st, err))", "_ = again",
		[]string{"TestRenewalFailedHookIsToldOfEachTry"},
	},
	{
		"joined hooks are called though one panics", "trace.go",
		"\t\tdefer then(ctx, e)\n\t\tfirst(ctx, e)", "\t\tfirst(ctx, e)\n\t\tthen(ctx, e)",
		[]string{"TestPanicOfAJoinedHookKeepsNothingBack"},
	},
	{
		"who has not asked who holds pays nothing", "obtain.go",
		"w.keeper.c.cfg.whoHolds && w.taken", "w.taken",
		[]string{"TestWhoHoldsCostsNobodyElse"},
	},
	{
		"who tells nobody asks nobody", "obtain.go",
		"taken && !w.quiet ||", "taken ||",
		[]string{"TestErrorsSayWhoHoldsWhereThatIsAskedFor"},
	},
	{
		"what returns no error asks nobody who holds", "once.go",
		"l.try(ctx, 0, manner{quiet: true})", "l.try(ctx, 0, manner{})",
		[]string{"TestWhatReturnsNoErrorAsksNobodyWhoHolds"},
	},
	{
		"a quorum asks nobody who holds", "quorum.go",
		"try(ctx, wait, manner{quiet: true})", "try(ctx, wait, manner{})",
		[]string{"TestAQuorumAsksNobodyWhoHolds"},
	},
	{
		"nobody waits long to hear who holds", "inspect.go",
		"whoWithin = 100 * time.Millisecond", "whoWithin = time.Second",
		[]string{"TestWhoHoldsCostsNobodyElse"},
	},
}
