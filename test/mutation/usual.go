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
		"what was made together in vain is made by itself", "internal/transport stream.deliverGroup",
		"g.resend = again", "g.resend = false",
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
		"if a.args[i] != b.args[i] {", "if i < 0 {",
		[]string{"TestCallsThatComeTogetherAreMadeByOneScript"},
	},
	{
		"groups are bounded", "internal/transport grouping.arrange",
		"batch[at].group = min(len(batch)-at, maxGroup)", "batch[at].group = len(batch) - at; break",
		[]string{"TestCallsThatComeTogetherAreMadeByOneScript"},
	},
	{
		"a server is told a script that it does not know", "internal/transport stream.deliverGroup",
		"s.group.cold = true", "s.group.cold = false",
		[]string{"TestCallsThatComeTogetherAreMadeByOneScript", "TestPairsOfManyCallersAreMadeTogether"},
	},
	{
		"after a call was made together in vain others are not", "internal/transport stream.deliverGroup",
		"if again = own.val == int64(0); again { s.group.solo = soloCalls", "if again = own.val == int64(0); again { s.group.solo = 0",
		[]string{"TestCallThatIsUnusualIsMadeByItself"},
	},
	{
		"a group whose reply cannot be read fails all of its calls", "internal/transport stream.deliverGroup",
		"case len(values) != n:", "case false:",
		[]string{"TestGroupWhoseReplyIsLostIsUnknown"},
	},
	{
		"half of a crowd is not kept waiting", "internal/transport stream.enter",
		"len(s.queue) >= max(s.tuner.halfPeak, fewCalls)", "len(s.queue) >= 2*max(s.tuner.halfPeak, fewCalls)",
		[]string{"TestHalfOfACrowdIsNotKeptWaiting"},
	},
	{
		"who has let others come writes nothing that another writes", "internal/transport stream.collect",
		"case s.writer != f:", "case s.writer == nil:",
		[]string{"TestHalfOfACrowdIsNotKeptWaiting"},
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
		"who is in a system call leaves a connection that is lost", "internal/transport stream.interruptAll",
		"_ = s.conn.SetDeadline(past) } }", "} }",
		[]string{"TestWhoIsInASystemCallLeavesAConnectionThatIsLost"},
	},
	{
		"TLS is not written to after a write that was cut short", "internal/transport stream.write",
		"case !resumable(s.conn):", "case false:",
		[]string{"TestWhoIsCutOffAsItWritesWithTLSLeavesTheRepliesToTheOthers", "TestWhoIsCutOffAsItWritesWithTLSLeavesAtOnce"},
	},
	{
		"what was written in full is answered though the rest was cut short", "internal/transport stream.send",
		"return f.endsAt <= n", "return f.endsAt < 0*n",
		[]string{"TestWhoIsCutOffAsItWritesWithTLSLeavesTheRepliesToTheOthers"},
	},
	{
		"nobody waits for TLS to take leave of who does not read", "internal/transport stream.close",
		"ok && broken {", "ok && false && broken {",
		[]string{"TestWhoIsCutOffAsItWritesWithTLSLeavesAtOnce"},
	},
	{
		"what was not sent for want of a connection goes by the client's", "internal/transport Transport.doShared",
		"!errors.Is(r.Err, errLost) ||", "true || !errors.Is(r.Err, errLost) ||",
		[]string{"TestCallBehindOneThatIsCutOffAsItWritesIsAnswered"},
	},
	{
		"who leaves in the middle of a reply leaves its rest to another", "internal/transport stream.receive",
		"if err := s.in.fill(); err != nil {", "if err := s.in.fill(); err != nil && len(s.in.open) > 0 { return errOrder } else if err != nil {",
		[]string{"TestWhoLeavesInTheMiddleOfAReplyLeavesTheRestToAnother"},
	},
	{
		"what has come of a reply is kept", "internal/transport decoder.fill",
		"d.buf[:copy(d.buf, d.buf[d.at:])], 0", "d.buf[:0], 0",
		[]string{"TestMoreRepliesThanAreReadAtOnceAreAllTaken"},
	},
	{
		"who has to write and reads for all reads on", "internal/transport stream.passReader",
		"if g == nil && s.writer == f && !f.done.Load() {", "if false {",
		[]string{"TestWhoHasToWriteAndReadsForAllReadsOn"},
	},
	{
		"a call that has ended is not sent again", "internal/transport stream.enter",
		"case f.abandoned:", "case false:",
		[]string{"TestACallThatHasEndedIsNotSentAgain"},
	},
	{
		"a hook that sends a call again changes nothing that is being written", "internal/transport stream.enter",
		"switch { case s.dead ||", "f.cmd = *cmd; switch { case s.dead ||",
		[]string{"TestACallThatHasEndedIsNotSentAgain"},
	},
	{
		"the faster of two ways to write is taken", "internal/transport yieldTuner.choose",
		"better := p.rates[1] > p.rates[0]", "better := p.rates[1] < p.rates[0]",
		[]string{"TestPaceTakesTheFasterWay"},
	},
	{
		"a connection to a server that takes no writes is left", "internal/transport stream.deliver",
		"if r.err != nil && takesNoWrites(r.err) && !s.madeRecently(r.err) {", "if false {",
		[]string{"TestACallAfterADemotionIsMadeOnANewConnection", "TestAServerThatTakesNoWritesStillGivesTheRepliesThatItOwes"},
	},
	{
		"a connection to a primary that lacks its replicas is left", "internal/transport takesNoWrites",
		"return ReadOnly(err) || hasCode(err, \"NOREPLICAS\")", "return ReadOnly(err)",
		[]string{"TestLocksFollowAnAddressThatLeavesAPrimaryWithoutReplicas"},
	},
	{
		"the idle connections of the client to a server that takes no writes are closed", "internal/transport closeIdle",
		"for range stats.IdleConns {", "for range 0 * stats.IdleConns {",
		[]string{"TestLocksFollowAnAddressThatLeavesAPrimaryWithoutReplicas"},
	},
	{
		"a primary that lacks its replicas does not have a connection made by each call", "internal/transport stream.madeRecently",
		"return !ReadOnly(err) && time.Since(s.made) < retireInterval", "return false",
		[]string{"TestAPrimaryWithoutReplicasIsNotDialledByEachCall"},
	},
	{
		"a call that ends does not ask a Cluster for its layout", "internal/transport Transport.nodeOf",
		"case t.many != nil && !t.routed.Load():", "case false:",
		[]string{"TestACallOfAClusterThatSaysNothingEndsInTime"},
	},
	{
		"what may have run is not sent again for a hook", "internal/transport flight.send",
		"if mayHaveRun(f.failure) {", "if false {",
		[]string{"TestACallThatAHookSendsAgainMayHaveRun"},
	},
	{
		"a reply that is lost is remembered", "internal/transport flight.send",
		"if mayHaveRun(r.err) {", "if false {",
		[]string{"TestACallThatAHookSendsAgainMayHaveRun"},
	},
	{
		"what may have run is told whatever a hook makes of it", "internal/transport Transport.runShared",
		"r.Err = inScript(c, f.why(ctx))", "_ = f.why(ctx)",
		[]string{"TestACallThatAHookSendsAgainMayHaveRun"},
	},
	{
		"a call that ended unsent stays ended", "internal/transport flight.send",
		"if !f.abandoned {", "if true {",
		[]string{"TestACallThatEndedUnsentStaysEnded"},
	},
	{
		"a flight that was left is not used again", "internal/transport Transport.runShared",
		"case r.Err == nil && f.failure != nil:", "case false:",
		[]string{"TestAFlightThatWasLeftIsNotUsedAgain"},
	},
	{
		"the end of a hook's context is not that of the caller's", "internal/transport flight.why",
		"return forCaller(f.failure)", "return f.failure",
		[]string{"TestAHooksOwnDeadlineIsNotTheCallersContexts"},
	},
	{
		"a connection that is busy ends with its lifetime", "internal/transport streamSource.tryJoin",
		"most > 0 && age >= most", "false && age >= most",
		[]string{"TestAConnectionThatIsBusyEndsWithItsLifetime", "TestRepliesComeThoughTheLifetimeOfTheirConnectionEnds"},
	},
	{
		"calls made together that may have run are not made again", "internal/transport stream.deliverGroup",
		"case mayHaveRun(r.err):", "case false:",
		[]string{"TestGroupWhoseReplyIsLostIsUnknown"},
	},
	{
		"what is to be sent in full is so beside others", "internal/transport Call.verb",
		"if c.InFull {", "if false {",
		[]string{"TestCallThatIsToBeSentInFullIsSoInAPipelineToo"},
	},
	{
		"connecting is not part of a try", "internal/transport streamSource.connect",
		"context.WithTimeout(context.Background(), openingLimit)", "context.WithTimeout(context.Background(), min(again, openingLimit))",
		[]string{"TestALockInAFarRedisCostsItsConnectionAndItsRoundTrips", "TestCredentialsMayTakeLongerThanATry"},
	},
	{
		"a connection is made from the first call on that has to wait", "internal/transport Transport.pooled",
		"func() { t.source.connect(timeout) }", "func() {}",
		[]string{"TestALockInAFarRedisCostsItsConnectionAndItsRoundTrips"},
	},
	{
		"a connection that cannot be made is left alone for a while", "internal/transport streamSource.opened",
		"if failed {", "if false && failed {",
		[]string{"TestCallsGoByTheClientWhereNoConnectionCanBeMade"},
	},
	{
		"one call waits for a connection that hangs", "internal/transport streamSource.await",
		"first.gaveUpOn.Store(true)", "_ = first",
		[]string{"TestDialThatHangsIsNotTriedByEachCall"},
	},
	{
		"holds are renewed though the client has no connection to spare", "internal/transport Transport.DoAll",
		"if len(calls) == 1 || t.poolBusy() {", "if false {",
		[]string{"TestHoldsAreRenewedThoughTheClientHasNoConnectionToSpare", "TestCredentialsMayTakeLongerThanATry"},
	},
	{
		"a connection that nothing interrupts is not shared", "internal/transport streamSource.opened",
		"o.closed = o.closed || noDeadlines", "_ = noDeadlines",
		[]string{"TestCallEndsThoughConnectionsHaveNoDeadlines"},
	},
	{
		"refused credentials are waited out with replicas as well", "internal/transport Transport.DoAcked",
		"results[i].Err = t.failed(&c, results[i].Err)", "_ = t.failed(&c, results[i].Err)",
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
}
