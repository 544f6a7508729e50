package mutation

// labelRules are those of what people are told: labels, the list of locks, and hooks.
var labelRules = []Rule{
	{
		"nobody waits long for a label to be stored", "internal/label firstWithin",
		"firstWithin = 100 * time.Millisecond", "firstWithin = 10 * time.Second",
		[]string{"TestLabelsThatAreNotAnsweredHoldUpNobody"},
	},
	{
		"a label is stored on another connection than locks are asked for", "internal/label Book.store",
		"call.Apart = true", "call.Apart = false",
		[]string{"TestLabelsThatAreNotAnsweredHoldUpNobody"},
	},
	{
		"nor to be read", "internal/label readWithin",
		"readWithin = time.Second", "readWithin = time.Minute",
		[]string{"TestLabelsThatAreNotAnsweredHoldUpNobody"},
	},
	{
		"a label is not stored by each call", "internal/label Book.Keep",
		"int64(lease) <= b.lease.Load() && !now.Reached(*due)", "false",
		[]string{"TestLabelIsStoredOnceAndKept"},
	},
	{
		"a label is kept while its client is used", ". watchdog.runDue",
		"c.labels.Keep(0, c.clock.Now())", "",
		[]string{"TestLabelIsStoredOnceAndKept", "TestLabelThatWasLostIsStoredAgain"},
	},
	{
		"a label is read alone where several are refused", "internal/label Book.read",
		"again = append(again, pages[i]...)", "",
		[]string{"TestLabelsAreReadOneByOneWhereTheServerRefusesSeveralKeys"},
	},
	{
		"a server that refuses several labels is asked for one each from then on", "internal/label Book.read",
		"b.cfg.OneKeyEach.Store(true)", "",
		[]string{"TestLabelsAreReadOneByOneWhereTheServerRefusesSeveralKeys"},
	},
	{
		"a label lives as long as the longest lease", "internal/label Book.store",
		"life := time.Duration(b.lease.Load()) + 2*every", "life := 2 * every",
		[]string{"TestLabelOutlivesTheLeasesOfADeadProcess"},
	},
	{
		"a longer lease has the label stored again", "internal/label Book.Keep",
		"int64(lease) <= b.lease.Load() && !now", "!now",
		[]string{"TestLabelOutlivesTheLeasesOfADeadProcess"},
	},
	{
		"a server that may be another one is told the label", ". Client.linked",
		"c.labels.Doubt(now)", "",
		[]string{"TestLabelThatWasLostIsStoredAgain"},
	},
	{
		"a key of another type is left alone", "lua/introduce.lua",
		"redis.call('HDEL', KEYS[1], 'label')\n", "",
		[]string{"TestLabelLeavesAKeyOfAnotherTypeAlone"},
	},
	{
		"a label is of the longest lease", ". Info.add",
		"one.TTL, one.Label, one.Detached = h.TTL, h.Label, h.Detached", "one.TTL, one.Detached = h.TTL, h.Detached",
		[]string{"TestLabelsOfManyReadersAreOfTheirLongestLeases"},
	},
	{
		"held is since the grant", "internal/wire DecodeInfo",
		"info.Now*1000-high", "info.Now*1000-high-1_000_000",
		[]string{"TestInfoTellsHolderAndWaiters", "TestHoldOfATicketHasNoLabel"},
	},
	{
		"what is free is not listed", ". scan.look",
		"errs[i] == nil && len(info.Holders) == 0", "false && len(info.Holders) == 0",
		[]string{"TestLocksListsWhatIsInUse"},
	},
	{
		"a server that does not answer is asked about each lock", ". scan.look",
		"silence = failed", "_ = failed",
		[]string{"TestLocksTellsSoonOfLocksThatAServerDoesNotTellOf"},
	},
	{
		"a slot that migrates is taken for a server that does not answer", ". scan.look",
		"&& !transport.TryAgain(failed.err)", "",
		[]string{"TestALockWhoseSlotMigratesHidesNoOtherFromLocks"},
	},
	{
		"a lock is listed once", ". scan.found",
		"s.seen[sum] = struct{}{}", "",
		[]string{"TestLocksComeOnceThoughTheirKeysComeTwice"},
	},
	{
		"the list asks step by step", ". scan.found",
		"slices.Chunk(locks, locksPage)", "slices.Chunk(locks, 100_000)",
		[]string{"TestLocksAsksStepByStep"},
	},
	{
		"the list ends with its context", ". over",
		"case ctx.Err() != nil: return ending.Of(ctx)", "",
		[]string{"TestLocksEndsWithItsContextAndItsClient"},
	},
	{
		"an inspection that is cut short says what was the matter", ". tries",
		"return fmt.Errorf(\"%w; until then: %w\", ending.Of(ctx), failed(ctx, err, c.clock.Now(), began))", "return ending.Of(ctx)",
		[]string{"TestInspectionThatIsCutShortSaysWhatWasTheMatterWithRedis"},
	},
	{
		"the list ends with its client", ". over",
		"case c.ctx.Err() != nil: return ErrClosed", "",
		[]string{"TestLocksEndsWithItsContextAndItsClient"},
	},
	{
		"a \\ in a class takes the meaning from what follows", "internal/key classOf",
		"case from == `\\` && rest != \"\":", "case false:",
		[]string{"TestMatchIsThatOfRedis", "TestShortPatternsMatchAsInRedis"},
	},
	{
		"a range goes either way", "internal/key classOf",
		"inSet(min(from, end)) + \"-\" + inSet(max(from, end))", "inSet(from) + \"-\" + inSet(end)",
		[]string{"TestMatchIsThatOfRedis", "TestShortPatternsMatchAsInRedis"},
	},
	{
		"a - that was escaped makes no range", "internal/key inSet",
		"return `\\-`", "return `-`",
		[]string{"TestMatchIsThatOfRedis", "TestShortPatternsMatchAsInRedis"},
	},
	{
		"a ] may end a range", "internal/key classOf",
		"&& end != \"\":", "&& end != \"\" && end != \"]\":",
		[]string{"TestMatchIsThatOfRedis", "TestShortPatternsMatchAsInRedis"},
	},
	{
		"a condition that nobody made says so", ". Cond.bad",
		"return errUnmadeCond", "return nil",
		[]string{"TestEveryMethodOfAZeroValueSaysWhatIsWrong", "TestAConditionThatNobodyMadeSaysWhatToDo"},
	},
	{
		"a call that gave up is told of", ". Lock.acquire",
		"w.gaveUpHook(err)", "",
		[]string{"TestGaveUpHookIsToldOfEachCallWithoutItsLock", "TestGaveUpHookIsToldOfTheLineAndOfClose"},
	},
	{
		"a renewal that failed is told of", ". watchdog.unrenewed",
		"hooks = append(hooks, newestHook(w.c.cfg.hooks.RenewalFailed, st, err))", "_ = st",
		[]string{"TestRenewalFailedHookIsToldOfEachTry"},
	},
	{
		"joined hooks are called though one panics", ". bothOf",
		"defer then(ctx, e); first(ctx, e)", "first(ctx, e); then(ctx, e)",
		[]string{"TestPanicOfAJoinedHookKeepsNothingBack"},
	},
	{
		"who has not asked who holds pays nothing", ". waiting.explain",
		"w.keeper.c.cfg.whoHolds && w.wasTaken", "w.wasTaken",
		[]string{"TestWhoHoldsCostsNobodyElse"},
	},
	{
		"who tells nobody asks nobody", ". waiting.explain",
		"taken && !w.falseIfTaken ||", "taken ||",
		[]string{"TestErrorsSayWhoHoldsWhereThatIsAskedFor"},
	},
	{
		"what returns no error asks nobody who holds", ". Client.Once",
		"l.try(ctx, 0, manner{falseIfTaken: true})", "l.try(ctx, 0, manner{})",
		[]string{"TestWhatReturnsNoErrorAsksNobodyWhoHolds"},
	},
	{
		"a quorum asks nobody who holds", ". waiting.explain",
		"w.wasTaken && !w.inQuorum && (", "w.wasTaken && (",
		[]string{"TestAQuorumAsksNobodyWhoHolds"},
	},
	{
		"nobody waits long to hear who holds", ". whoWithin",
		"whoWithin = 100 * time.Millisecond", "whoWithin = time.Second",
		[]string{"TestWhoHoldsCostsNobodyElse"},
	},
	{
		"a joined hook that does not return keeps no other back", ". both",
		"defer then(e); first(e)", "first(e); then(e)",
		[]string{"TestAHookThatDoesNotReturnKeepsNoJoinedHookBack"},
	},
	{
		"a resumed hold is told as one that was acquired", ". Lock.putOnHandle",
		"l.c.cfg.hooks.Acquired != nil", `l.c.cfg.hooks.Acquired != nil && w.ticket == ""`,
		[]string{"TestHooksFollowAHoldThatIsResumed"},
	},
	{
		"a call whose hook does not return has not given up", ". waiting.waitingHook",
		"hook(w.ctx, w.event(nil))",
		"back := false; defer func() { if !back { w.gaveUpHook(errGone) } }(); hook(w.ctx, w.event(nil)); back = true",
		[]string{"TestACallWhoseWaitingHookDoesNotReturnHasNotGivenUp"},
	},
	{
		"the error of a Detach is told", ". Hold.detach",
		"h.releasedHook(err, now)", "h.releasedHook(nil, now)",
		[]string{"TestReleasedHookHasTheErrorOfTheRelease"},
	},
	{
		"an Unlock during a wait is told with its error", ". Hold.end",
		"err != nil && err != errAbsent {", "err != nil && err != errAbsent { k.end(at); return err }; if err = nil; false {",
		[]string{"TestAnUnlockDuringAWaitOfItsOwnerIsRemembered"},
	},
	{
		"locks are listed while the client shuts down", ". over",
		"case c.ctx.Err() != nil:", "case c.tracker.Draining():",
		[]string{"TestShutdownWaitsForHolds"},
	},
	{
		"all holders of a listed lock are told", ". scan.whole",
		"page = nil", "page.Next = 0",
		[]string{"TestManyReadersAreReadInPages"},
	},
	{
		"a free name has the kind that it had last", ". readInfo",
		"all = Info{", "if len(page.Holders)+page.Waiters == 0 && page.Resting == 0 { page.Kind = `` }; all = Info{",
		[]string{"TestAFreeNameHasTheKindThatItHadLast"},
	},
	{
		"a label may have 128 bytes", "internal/key CheckLabel",
		"check(label, maxLabel,", "check(label, maxLabel-1,",
		[]string{"TestBadLabelIsRefused"},
	},
	{
		"a TryDo that returns no error does not ask who holds", ". Lock.TryDo",
		"manner{falseIfTaken: true}", "manner{}",
		[]string{"TestWhatReturnsNoErrorAsksNobodyWhoHolds"},
	},
	{
		"a label that is not stored is told", "internal/label Book.begin",
		"err != nil {", "err != nil && ctx.Err() != nil {",
		[]string{"TestLabelThatCouldNotBeStoredIsStoredLater"},
	},
	{
		"a label that is not stored is stored later", "internal/label Book.begin",
		"now.Add(soon)", "now.Add(100 * soon)",
		[]string{"TestLabelThatCouldNotBeStoredIsStoredLater"},
	},
	{
		"a label that is not stored waits for half a minute", "internal/label Book.begin",
		"now.Add(soon)", "now",
		[]string{"TestLabelThatCouldNotBeStoredIsStoredLater"},
	},
}
