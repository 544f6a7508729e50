package mutation

// usualRules are those of calls that are made together: the second way of saying what
// acquire and release say at their top.
var usualRules = []Rule{
	{
		"a request that would have an echo is made together with others", "internal/wire Encoder.Acquire",
		"if len(args) == 9 && requests", "if len(args) == 9 && echo == Quiet && requests",
		[]string{"TestPairsOfManyCallersAreMadeTogether"},
	},
	{
		"together, a session is released by who has it", "lua/usual.lua",
		"fields[1] == ARGV[at] and not fields[2] and type", "not fields[2] and type",
		[]string{"TestCallsMadeTogetherAreAnsweredAsTheirOwnScriptsDo"},
	},
	{
		"together, a release looks who waits", "lua/usual.lua",
		"fields[1] == ARGV[at] and not fields[2] and type", "fields[1] == ARGV[at] and type",
		[]string{"TestCallsMadeTogetherAreAnsweredAsTheirOwnScriptsDo"},
	},
	{
		"together, a request takes no lock that somebody has", "lua/usual.lua",
		"not (fields.err or fields[1] or fields[2])", "not (fields.err or fields[2])",
		[]string{"TestCallsMadeTogetherAreAnsweredAsTheirOwnScriptsDo"},
	},
	{
		"together, a request takes no lock where anything is unusual", "lua/usual.lua",
		"not (fields.err or fields[1] or fields[2])", "not (fields.err or fields[1])",
		[]string{"TestCallsMadeTogetherAreAnsweredAsTheirOwnScriptsDo"},
	},
	{
		"together, a request takes no lock of another kind", "lua/usual.lua",
		"(not fields[4] or fields[4] == kind) and ", "",
		[]string{"TestCallsMadeTogetherAreAnsweredAsTheirOwnScriptsDo"},
	},
	{
		"together, a request that is late is refused", "lua/usual.lua",
		"left > 0 and ", "",
		[]string{"TestCallsMadeTogetherAreAnsweredAsTheirOwnScriptsDo"},
	},
	{
		"together, a counter that is spoilt fails its own lock alone", "lua/usual.lua",
		"(not fields[3] or tonumber(fields[3])) and ", "",
		[]string{"TestCallsMadeTogetherAreAnsweredAsTheirOwnScriptsDo"},
	},
	{
		"together, tokens grow", "lua/usual.lua",
		"elseif token - last > 0 then", "else",
		[]string{"TestCallsMadeTogetherAreAnsweredAsTheirOwnScriptsDo"},
	},
	{
		"together, no two grants share a token", "lua/usual.lua",
		"if block ~= '1' and token - last < block + 0 then", "if false then",
		[]string{"TestCallsMadeTogetherAreAnsweredAsTheirOwnScriptsDo"},
	},
	{
		"what was made together in vain is made by itself", "internal/transport grouping.distribute",
		"f.again = again", "f.again = false",
		[]string{"TestCallsThatComeTogetherAreMadeByOneScript", "TestCallThatIsUnusualIsMadeByItself"},
	},
	{
		"together, what a new name's TTL came to is looked at", "lua/usual.lua",
		"type(stored) == 'number' and redis.pcall('HSET', KEYS[i], 'holder', identity, field, counts .. block, 'token', token, 'kind', kind)",
		"redis.pcall('HSET', KEYS[i], 'holder', identity, field, counts .. block, 'token', token, 'kind', kind)",
		[]string{"TestCallsMadeTogetherStoreNothingThatLivesForEver"},
	},
	{
		"what has less in common is not made together", "internal/transport alike",
		"return a.args[i] != b.args[i]", "return false",
		[]string{"TestCallsThatComeTogetherAreMadeByOneScript"},
	},
	{
		"groups are bounded", "internal/transport grouping.arrange",
		"batch[at].group = min(len(batch)-at, maxGroup)", "batch[at].group = len(batch) - at; break",
		[]string{"TestCallsThatComeTogetherAreMadeByOneScript"},
	},
	{
		"a server is told a script that it does not know", "internal/transport grouping.distribute",
		"g.cold = true", "g.cold = false",
		[]string{"TestCallsThatComeTogetherAreMadeByOneScript", "TestPairsOfManyCallersAreMadeTogether"},
	},
	{
		"after a call was made together in vain others are not", "internal/transport grouping.distribute",
		"if again = own.val == int64(0); again { g.solo = soloCalls", "if again = own.val == int64(0); again { g.solo = 0",
		[]string{"TestCallThatIsUnusualIsMadeByItself"},
	},
	{
		"a group whose reply cannot be read fails all of its calls", "internal/transport grouping.distribute",
		"case len(values) != len(flights):", "case false:",
		[]string{"TestGroupWhoseReplyIsLostIsUnknown"},
	},
	{
		"who reads for a few looks before it sleeps", "internal/transport spinner.Read",
		"if n := spinRead(p.raw, b); n > 0 {", "if n := 0; n > 0 {",
		[]string{"TestWhoReadsForAFewTakesWhatHasComeWithoutSleeping"},
	},
	{
		"who finds nothing seldom looks", "internal/transport spinner.Read",
		"p.misses, p.skip = maxMisses-1, skippedReads", "p.misses = 0",
		[]string{"TestWhoFindsNothingSeldomLooks"},
	},
	{
		"who reads for one or for a crowd does not look", "internal/transport spinner.Read",
		"n < minSpinCalls || n >= manyCalls", "n < 0",
		[]string{"TestWhoReadsForOneOrForACrowdDoesNotLook"},
	},
	{
		"what has a socket inside is not looked at", "internal/transport newSpinner",
		"switch c := conn.(type) {", "switch c := conn.(type) { case interface{ SyscallConn() (syscall.RawConn, error) }: p.raw, _ = c.SyscallConn()",
		[]string{"TestWhatHasASocketInsideIsNotLookedAt"},
	},
	{
		"every call on a connection that is lost ends", "internal/transport stream.fail",
		"f.finish(reply{err: err})", "_ = f",
		[]string{"TestEveryCallOnAConnectionThatIsLostEnds"},
	},
	{
		"what was not sent for want of a connection goes by the client's", "internal/transport Transport.doShared",
		"lost := errors.Is(r.Err, errLost) &&", "lost := false &&",
		[]string{"TestCallBehindOneThatIsCutOffAsItWritesIsAnswered"},
	},
	{
		"the reply of a call that has ended is dropped", "internal/transport stream.leave",
		"f.ended = true", "s.flying = slices.DeleteFunc(s.flying, func(g *flight) bool { return g == f })",
		[]string{"TestTheRestOfAReplyWhoseCallHasEndedIsDropped"},
	},
	{
		"a call that has ended is not sent again", "internal/transport sharedCall.send",
		"case c.failure != nil:", "case false:",
		[]string{"TestACallThatGotNoAnswerIsNotSentAgain"},
	},
	{
		"a connection to a server that takes no writes is left", "internal/transport stream.take",
		"r.err != nil && takesNoWrites(r.err) &&", "false &&",
		[]string{"TestACallAfterADemotionIsMadeOnANewConnection", "TestAServerThatTakesNoWritesStillGivesTheRepliesThatItOwes"},
	},
	{
		"a connection to a primary that lacks its replicas is left", "internal/transport takesNoWrites",
		"return ReadOnly(err) || hasCode(err, \"NOREPLICAS\")", "return ReadOnly(err)",
		[]string{"TestLocksFollowAnAddressThatLeavesAPrimaryWithoutReplicas"},
	},
	{
		"the idle connections of the client to a server that takes no writes are closed", "internal/transport closeIdle",
		"onIdle(ctx, at, at.PoolStats(), 0, command)", "_ = command",
		[]string{"TestLocksFollowAnAddressThatLeavesAPrimaryWithoutReplicas"},
	},
	{
		"a primary that lacks its replicas does not have a connection made by each call", "internal/transport stream.take",
		"(ReadOnly(r.err) || time.Since(s.made) >= retireInterval)", "true",
		[]string{"TestAPrimaryWithoutReplicasIsNotDialledByEachCall"},
	},
	{
		"a call that ends does not ask a Cluster for its layout", "internal/transport Transport.nodeOf",
		"case !t.routed.Load():", "case false:",
		[]string{"TestACallOfAClusterThatSaysNothingEndsInTime"},
	},
	{
		"what may have run is not sent again for a hook", "internal/transport sharedCall.send",
		"if r.err != nil && (!errors.As", "if false && (!errors.As",
		[]string{"TestACallThatAHookSendsAgainMayHaveRun"},
	},
	{
		"what may have run is told whatever a hook makes of it", "internal/transport Transport.doShared",
		"r.Err = inScript(c, w.callerError(ctx))", "_ = w.callerError(ctx)",
		[]string{"TestACallThatAHookSendsAgainMayHaveRun"},
	},
	{
		"what is queued on a connection that is stuck goes by the client's", "internal/transport stream.failQueue",
		"f.finish(reply", "_, _ = f, (reply",
		[]string{"TestCallBehindOneThatIsCutOffAsItWritesIsAnswered"},
	},
	{
		"who is alone leaves its reply to the reader", "internal/transport stream.endAlone",
		"if s.reading { wake(s.toRead) }", "",
		[]string{"TestACallerThatIsAloneLeavesItsReplyToTheReader", "TestWhoComesWhileOneIsAloneIsWrittenAndAnsweredAfterIt"},
	},
	{
		"who is alone is interrupted when its time is over", "internal/transport stream.alarmFired",
		"s.interrupt(f)", "",
		[]string{"TestACallerThatIsAloneLeavesItsReplyToTheReader"},
	},
	{
		"a call of a group is not sent alone after its context has ended", "internal/transport sharedCall.send",
		"return c.send(ctx, cmd)", "r, _ = c.stream.send(ctx, c.deadline, cmd)",
		[]string{"TestACallOfAGroupIsNotSentAloneAfterItsContextHasEnded"},
	},
	{
		"a flight that may still be interrupted is not used again", "internal/transport stream.send",
		"!leaves && ctx.Err() == nil", "true",
		[]string{"TestAFlightThatMayStillBeInterruptedIsNotUsedAgain"},
	},
	{
		"a flight whose reply came as its time ended is not used again", "internal/transport stream.send",
		"!leaves && ctx.Err() == nil", "ctx.Err() == nil",
		[]string{"TestAFlightWhoseReplyComesAsItsTimeEndsIsNotUsedAgain"},
	},
	{
		"a stream by Sentinel ends when the pool loses a connection", "internal/transport streamSource.switched",
		"pool.StaleConns == s.poolLost &&", "",
		[]string{"TestTheStreamOfASentinelClientEndsWhenAnotherPrimaryIsNamed"},
	},
	{
		"a stream by Sentinel is not used while the pool has no connection", "internal/transport streamSource.switched",
		"&& pool.IdleConns > 0", "",
		[]string{"TestTheStreamOfASentinelClientEndsWhenAnotherPrimaryIsNamed"},
	},
	{
		"a stream by Sentinel is not made while the pool has no connection", "internal/transport streamSource.connect",
		"o.sentinel && pool.IdleConns == 0", "false",
		[]string{"TestTheStreamOfASentinelClientEndsWhenAnotherPrimaryIsNamed"},
	},
	{
		"a stream that had to end soon is not replaced at once", "internal/transport streamSource.switched",
		"o.noDialBefore = again", "_ = again",
		[]string{"TestAPoolThatLosesConnectionsAllTheTimeIsNotDialledForStreams"},
	},
	{
		"what a pipeline has answered stays though the next one is lost", "internal/transport withTexts",
		"results[cold[n]] = r", "results[cold[n]] = r; for i := range results { results[i] = r }",
		[]string{"TestAnswersOfAPipelineStayThoughTheTextsAreLost"},
	},
	{
		"hooks of a Cluster client see what its primaries are sent", "internal/transport Transport.sourceFor",
		"!t.shards.hooks.absent.Load()", "false",
		[]string{"TestHooksOfAClusterClientSeeEveryCommand"},
	},
	{
		"a Cluster client without hooks is known", "internal/transport scout.Name",
		"s.found.detect()", "",
		[]string{"TestCallsToAPrimaryOfAClusterShareAConnection"},
	},
	{
		"a pool is full once it may make no more connections", "internal/transport streamSource.poolFull",
		"most = min(most, opt.MaxActiveConns)", "",
		[]string{"TestARenewalNeedsNoneOfAsManyConnectionsAsMayBe"},
	},
	{
		"a stream that owes a reply to nobody is replaced", "internal/transport streamSource.tryJoin",
		"if alone {", "if false {",
		[]string{"TestAStreamThatOwesAReplyToNobodyIsReplaced"},
	},
	{
		"a connection that takes no command is left", "internal/transport stream.write",
		"s.fail(err)", "_ = err",
		[]string{"TestACallWhoseCommandCannotBeWrittenEndsAtOnce"},
	},
	{
		"idle connections are not closed by each call", "internal/transport Transport.retireIdle",
		"ending.Pause(t.life, nil, retireInterval)", "_ = ending.Pause",
		[]string{"TestIdleConnectionsToAPrimaryWithoutReplicasAreNotClosedByEachCall"},
	},
	{
		"no stream is made after Wait", "internal/transport streamSource.close",
		"o.closed = true", "",
		[]string{"TestACallAfterWaitLeavesNoConnection"},
	},
	{
		"no primary gets a stream after Wait", "internal/transport Transport.newShard",
		"if t.closing {", "if false {",
		[]string{"TestACallAfterWaitLeavesNoConnection"},
	},
	{
		"a stream to one primary leaves those to others", "internal/transport Transport.newShard",
		"&& other.(*redis.Client).PoolStats().TotalConns == 0", "",
		[]string{"TestCallsToTwoPrimariesInTurnsMakeNoConnections"},
	},
	{
		"a context that ends in a hook ends its call", "internal/transport Transport.doShared",
		"case ctx.Err() != nil && Classify(r.Err) == Unknown:", "case false:",
		[]string{"TestACallWhoseContextEndsInAHookSaysSo"},
	},
	{
		"what a hook keeps back is no reply", "internal/transport result",
		"err = errNothing", "_ = errNothing",
		[]string{"TestACommandThatAHookKeepsBackIsNotAnswered"},
	},
	{
		"the stream to a server that has left is closed", "internal/transport Transport.newShard",
		"t.spawn(o.(*streamSource).close)", "_ = o",
		[]string{"TestTheStreamToAServerThatHasLeftIsClosed"},
	},
	{
		"a call on a stream goes where the server says", "internal/transport misrouted",
		`return hasCode(err, "MOVED") || hasCode(err, "ASK") ||`, "return",
		[]string{"TestACallFollowsItsSlot"},
	},
	{
		"who is alone is interrupted as it writes", "internal/transport stream.interrupt",
		"_ = s.conn.SetWriteDeadline(past)", "",
		[]string{"TestWhoComesWhileOneIsStuckGoesElsewhere", "TestACallLeavesAtOnceThoughNothingCanBeWrittenWithTLS"},
	},
	{
		"a stream on which a call was interrupted as it wrote is left", "internal/transport stream.roundTrip",
		"if s.interrupted {", "if false {",
		[]string{"TestWhoComesWhileOneIsStuckGoesElsewhere"},
	},
	{
		"who comes while one is alone is written after it", "internal/transport stream.takeQueue",
		"if s.writing { return out }", "",
		[]string{"TestWhoComesWhileOneIsAloneIsWrittenAndAnsweredAfterIt"},
	},
	{
		"an interruption that comes too late interrupts nobody", "internal/transport stream.endAlone",
		"s.interrupted = s.conn.SetReadDeadline(time.Time{}) != nil", "s.interrupted = false",
		[]string{"TestAnInterruptionThatComesTooLateInterruptsNobody"},
	},
	{
		"a connection that the server has closed is not used", "internal/transport streamSource.tryJoin",
		"|| idle >= checkAfter && s.lost()", "",
		[]string{"TestConnectionThatTheServerClosedIsNotUsed"},
	},
	{
		"what has begun is not queued on a connection that is stuck", "internal/transport stream.leave",
		"s.dead = true", "",
		[]string{"TestACallThatHasBegunIsNotQueuedOnAConnectionThatIsStuck"},
	},
	{
		"an answer in the cause of a context is no answer", "internal/transport sharedCall.send",
		"ending.In(r.err) ||", "false ||",
		[]string{"TestAnAnswerInTheCauseOfAContextIsNoAnswer"},
	},
	{
		"a lone call does not spend the text of the groups' script", "internal/transport grouping.arrange",
		"if len(batch) > at+1 {", "if len(batch) > at {",
		[]string{"TestALoneCallDoesNotSpendTheTextOfTheGroupsScript"},
	},
	{
		"a flight that was left is not used again", "internal/transport stream.send",
		"if sent, left := s.leave(f); left {", "if sent, left := s.leave(f); left { s.free.Put(f)",
		[]string{"TestAFlightThatWasLeftIsNotUsedAgain"},
	},
	{
		"the end of a hook's context is not that of the caller's", "internal/transport sharedCall.callerError",
		"return forCaller(c.failure)", "return c.failure",
		[]string{"TestAHooksOwnDeadlineIsNotTheCallersContexts"},
	},
	{
		"a connection that is busy ends with its lifetime", "internal/transport streamSource.tryJoin",
		"if old(o.opt.ConnMaxLifetime, age) ||", "if false ||",
		[]string{"TestAConnectionThatIsBusyEndsWithItsLifetime", "TestRepliesComeThoughTheLifetimeOfTheirConnectionEnds"},
	},
	{
		"calls made together that may have run are not made again", "internal/transport grouping.distribute",
		"case mayHaveRun(r.err):", "case false:",
		[]string{"TestGroupWhoseReplyIsLostIsUnknown"},
	},
	{
		"connecting is not part of a try", "internal/transport streamSource.connect",
		"context.WithTimeout(context.Background(), openingLimit)", "context.WithTimeout(context.Background(), min(stall, openingLimit))",
		[]string{"TestALockInAFarRedisCostsItsConnectionAndItsRoundTrips", "TestCredentialsMayTakeLongerThanATry"},
	},
	{
		"a connection is made from the first call on that has to wait", "internal/transport Transport.pooled",
		"time.AfterFunc(stall, o.connect)", "time.AfterFunc(stall, func() {})",
		[]string{"TestALockInAFarRedisCostsItsConnectionAndItsRoundTrips"},
	},
	{
		"a connection that cannot be made is left alone for a while", "internal/transport streamSource.opened",
		"if failed || o.slow.Load() {", "if false && failed {",
		[]string{"TestCallsGoByTheClientWhereNoConnectionCanBeMade"},
	},
	{
		"one call waits for a connection that hangs", "internal/transport streamSource.await",
		"p.gaveUpOn.Store(true)", "_ = p",
		[]string{"TestDialThatHangsIsNotTriedByEachCall"},
	},
	{
		"holds are renewed though the client has no connection to spare", "internal/transport Transport.DoAll",
		"&& !t.sourceFor(&own[0]).poolBusy() {", "{",
		[]string{"TestHoldsAreRenewedThoughTheClusterClientHasNoConnectionToSpare"},
	},
	{
		"a call that is alone needs no connection of the client's", "internal/transport Transport.DoAll",
		"len(own) > 1 && ", "",
		[]string{"TestCredentialsMayTakeLongerThanATry"},
	},
	{
		"a connection that nothing interrupts is not shared", "internal/transport streamSource.opened",
		"o.closed = o.closed || noDeadlines", "_ = noDeadlines",
		[]string{"TestConnectionsWithoutDeadlinesAreNotShared"},
	},
	{
		"refused credentials are waited out with replicas as well", "internal/transport Transport.DoAcked",
		"results[i].Err = t.concluded(&c, results[i].Err)", "_ = t.concluded(&c, results[i].Err)",
		[]string{"TestCallsWaitOutTheRotationOfAPassword"},
	},
	{
		"a client that was served waits out refused credentials", "internal/transport Transport.barred",
		"t.everSucceeded.Load() &&", "false &&",
		[]string{
			"TestCallsWaitOutTheRotationOfAPassword", "TestACallThatEndsDuringARotationSaysWhatRedisRefused",
			"TestCallsOfRedissonWaitOutTheRotationOfAPassword",
		},
	},
	{
		"a client that was never served is told of wrong credentials", "internal/transport Transport.barred",
		"t.everSucceeded.Load() &&", "",
		[]string{"TestAWrongPasswordIsToldAtOnceByTheFirstCall", "TestAWrongPasswordIsToldAtOnceByTheFirstCallOfRedisson"},
	},
	{
		"an argument that a hook has made of another type is not sent", "internal/transport passage.process",
		"if !encodable(cmd.Args()) {", "if false {",
		[]string{"TestHookThatMakesAnArgumentOfAnotherTypeIsRefused"},
	},
}
