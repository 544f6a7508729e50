package relock_test

// safetyRules are those of docs/protocol.md without which there are two holders
// or a token that goes down (F01 to F11 of docs/faults.md), each taken out in one place.
var safetyRules = []mutation{
	{
		"the holder is an acquisition, not a process", "lua/acquire.lua",
		"if told and tonumber(told) > now then\n",
		"if told and holder == client then\n  return { now, 0, 1, fields[2], fields[2], told - now, '' }\nend\nif told and tonumber(told) > now then\n",
		[]string{"TestF01AcquireThatOvertakesTheReleaseOfItsOwnProcessWaits"},
	},
	{
		"a session is found by client and nonce", "lua/shared_state.lua",
		"  local before = ' ' .. client .. ' '\n",
		"  for c, n in each_session(grant) do\n    if c == client then\n      nonce = n\n    end\n  end\n  local before = ' ' .. client .. ' '\n",
		[]string{"TestF01ReleaseSentAgainDoesNotEndTheNextHoldOfItsOwner", "TestF16ReleaseSentAgainFreesNoLaterHold"},
	},
	{
		"an owner is not a session", "lua/shared_state.lua",
		"  local before = ' ' .. client .. ' '\n",
		"  client, nonce = string.match(grant.sessions, '^ (%S+) (%S+)')\n  if not client then return end\n  local before = ' ' .. client .. ' '\n",
		[]string{
			"TestF09LeaveSentAgainDoesNotEndTheGrantOfTheSameOwner",
			"TestF09PollOfOneRequestIsNotAnsweredByAnotherOfItsOwner",
		},
	},
	{
		"a grant lasts until its last session", "lua/release.lua",
		"if grant.sessions == '' then", "if true then",
		[]string{"TestF02HoldsOfOneOwnerInTwoProcessesEndOneByOne"},
	},
	{
		"a statement overrides older ones only", "lua/hold.lua",
		"if op > session.op and", "if",
		[]string{"TestF02LateCopyOfACountChangesNothing", "TestF02StatementsThatArriveInTheWrongOrderCountTheLastOne"},
	},
	{
		"a session ends by its own deadline", "lua/shared_state.lua",
		"if tonumber(deadline) > now then\n      return", "if true then\n      return",
		[]string{"TestF02HoldsOfADeadProcessEndThoughAnotherRenews"},
	},
	{
		"a request that holds already has the rest of its lease", "lua/acquire.lua",
		"grant.high, session.deadline - now, ''", "grant.high, request.ttl, ''",
		[]string{"TestF03aAcquireSentAgainIsTrustedNoLongerThanItsLease"},
	},
	{
		"no deadline moves earlier", "lua/hold.lua",
		"math.max(", "select(2, ",
		[]string{"TestF03bNestedShorterLeaseShortensNothing"},
	},
	{
		"no queue's TTL moves earlier", "lua/shared_queue.lua",
		"lease, 'GT')", "lease)",
		[]string{"TestF03bWaiterWithAShortLeaseLeavesTheOthersInTheQueue"},
	},
	{
		"a message is trusted from the last heartbeat", "watchdog.go",
		"!s.grant(m.low, m.high, sent,", "sent.IsZero() || !s.grant(m.low, m.high, now,",
		[]string{"TestF03cGrantReadLateIsTrustedFromTheLastHeartbeat"},
	},
	{
		"a renewal that finds nothing is a loss", "statement.go",
		"tell = s.gone(fmt.Errorf(\"%w: redis no longer has it\", ErrLost), now)\n\t\terr = errGone", "err = errors.New(\"try again\")",
		[]string{"TestF03dHoldThatAServerWithALaterClockEndedIsLostAtTheNextRenewal"},
	},
	{
		"what redis no longer has is ended there", "session.go",
		"if lost == nil || until == 0 {", "if lost == nil || until >= 0 {",
		[]string{"TestF08LateCopyOfTheAcquireOfARemovedHoldGrantsNothing"},
	},
	{
		"what a renewal of many leaves is stated", "renew.go",
		"	if len(left) > 0 {\n\t\ttells = append(tells, c.restate(", "	if false {\n\t\ttells = append(tells, c.restate(",
		[]string{"TestF03dOneOfManyHoldsThatIsGoneIsLostAlone"},
	},
	{
		"a lease that has passed is not renewed among others", "lua/renew.lua",
		"and tonumber(deadline) > now and", "and",
		[]string{"TestF03dLeasesThatHavePassedAreNotRevivedTogether"},
	},
	{
		"a lease that has passed is not renewed", "lua/hold.lua",
		"and tonumber(deadline) > now and op", "and op",
		[]string{"TestF03dLeaseThatHasPassedIsNotRevived"},
	},
	{
		"trust is shorter than the lease", "session.go",
		"{ return lease/100 + 2*time.Millisecond }", "{ return 0 * lease }",
		[]string{"TestF03dTrustEndsBeforeTheLeaseOnAClockThatIsOnePercentFast"},
	},
	{
		"no lease is trusted for longer than was asked for", "session.go",
		"remaining = min(remaining, s.lasts())", "_ = s",
		[]string{"TestF03dTrustDoesNotOutliveAClockThatStepsBackAndReturns"},
	},
	{
		"a grant is believed for a known nonce", "watchdog.go",
		"\tif s == nil {\n\t\tif m.verb", "\tif s == nil {\n\t\tc.mu.Lock()\n\t\tfor _, s = range c.sessions {\n\t\t}\n\t\tc.mu.Unlock()\n\t}\n\tif s == nil {\n\t\tif m.verb",
		[]string{"TestF04ForgedGrantIsNotBelieved", "TestF04ReplayedGrantIsNotBelieved"},
	},
	{
		"a later answer overrules a grant", "watchdog.go",
		"sent, known := s.sentAt(m.op)\n\tif !known || m.op < s.answered || ", "sent := now\n\tif ",
		[]string{"TestF04GrantThatALaterAnswerOverruledIsNotBelieved"},
	},
	{
		"an unknown grant is given back", "watchdog.go",
		"c.disown(m.nonce, nil, instant{})", "_ = 0",
		[]string{"TestF04GrantThatNobodyWaitsForIsPassedOn"},
	},
	{
		"a client's name is not its inbox", "identity.go",
		"append(text, madeMark), s.room.c.name...", "append(text, madeMark), s.room.c.id...",
		[]string{"TestF04SecretsStayInTheProtocol"},
	},
	{
		"an inbox is under the key prefix", "internal/key/key.go",
		"return prefix + \":inbox:\" + client", "return \"relock:inbox:\" + client",
		[]string{"TestF04InboxIsNamedUnderTheKeyPrefix"},
	},
	{
		"a ticket outlives its entry", "lua/acquire.lua",
		"ticket = math.max(request.place, 0)", "ticket = 0",
		[]string{
			"TestF05WaiterWithoutASubscriptionKeepsItsPlace",
			"TestF05WaitersThatLoseAllSubscriptionsAtOnceKeepTheirOrder",
		},
	},
	{
		"a hand-off gives the rest of the entry's lease", "lua/shared_settle.lua",
		"writes = 1, reads = 0, deadline = waiter.deadline,", "writes = 1, reads = 0, deadline = now + 30000,",
		[]string{"TestF05FrozenWaitersTogetherCostOneLease"},
	},
	{
		"a dead entry is passed over", "lua/shared_settle.lua",
		"if waiter.deadline <= now then", "if false then",
		[]string{"TestF05EntryPastItsDeadlineIsPassedOver"},
	},
	{
		"a heartbeat finds its own grant", "lua/acquire.lua",
		"  if not session then\n    if not request.named or", "  if not session or not request.named then\n    if not request.named or",
		[]string{"TestF05GrantThatIsNotHeardCostsAHeartbeat"},
	},
	{
		"heartbeats come every ten seconds at least", "session.go",
		"return min(ttl/3, longestPulse)", "return ttl / 3",
		[]string{"TestF05LostMessageCostsTenSecondsAtMost"},
	},
	{
		"an inbox without an echo is replaced", "watchdog.go",
		"e.Suspect()", "_ = 0",
		[]string{"TestF05HalfOpenInboxIsReplaced"},
	},
	{
		"waiters keep a name's kind", "lua/acquire.lua",
		"redis.call('ZCOUNT', KEYS[2], '(' .. text(-far), '(' .. text(-now)) > 0", "false",
		[]string{"TestF06KindOutlivesADeadHolderWhileSomebodyWaits"},
	},
	{
		"a holder keeps its name's kind", "lua/acquire.lua",
		"if held() or KEYS[2] and", "if KEYS[2] and",
		[]string{"TestF06NameChangesItsKindOnlyWhenNobodyHolds"},
	},
	{
		"a waiter hears of another kind", "watchdog.go",
		"case a.code == answerKind:\n\t\ts.fail(fmt.Errorf(\"%w: it is a %s lock now\", ErrKind, a.kind))", "case a.code == answerKind:\n\t\ts.retry(now)",
		[]string{"TestF06WaiterThatFindsAnotherKindIsRefused"},
	},
	{
		"a released nonce is kept while a copy may arrive", "lua/release.lua",
		"if until_ms > now then", "if false then",
		[]string{
			"TestF08LateCopyOfAnEndedAcquireGrantsNothing", "TestF08LateHeartbeatOfAnEndedWaiterGrantsNothing",
			"TestF08LeaveThatOvertakesItsAcquireLeavesNoGhost",
		},
	},
	{
		"a request has a not-after", "lua/acquire.lua",
		"if not_after <= now or not_after > now + 60000 then", "if false then",
		[]string{"TestF08CopyThatArrivesAfterItsTimeGrantsNothing"},
	},
	{
		"a refusal tells the server's time", "pubsub_wait.go",
		"r.sample(reply.now)", "",
		[]string{"TestF08ServerWhoseClockIsOtherwiseIsLockedAllTheSame"},
	},
	{
		"every server has a clock of its own", "locker.go",
		"time.Now().UnixMilli() + r.skew.Load()", "time.Now().UnixMilli() + r.c.skew.Load()",
		[]string{"TestF08WaitersOfAClusterKeepTheirPlacesThoughItsClocksDiffer"},
	},
	{
		"a ForceUnlock is of one token", "lua/force.lua",
		" and grant.low == tonumber(ARGV[3]) then", " then",
		[]string{"TestF09CopyOfAForceUnlockLeavesTheNextGrantOfTheSameOwner"},
	},
	{
		"an unanswered ForceUnlock may have worked", "inspect.go",
		"|| removed || unanswered", "|| removed || unanswered && false",
		[]string{"TestF09ForceUnlockSentAgainDoesNotRemoveTheSuccessor"},
	},
	{
		"a ForceUnlock tells the loser", "lua/force.lua",
		"tell(client, 'lost ' .. nonce)", "",
		[]string{"TestF09LoserOfAForceUnlockIsToldAtOnce"},
	},
	{
		"an unanswered release may have worked", "statement.go",
		"r.was = r.was || r.lost || state == wasHeld", "r.was = r.was || state == wasHeld",
		[]string{"TestF09UnlockWhoseReplyIsLostIsNoLoss"},
	},
	{
		"an answered release says what it found", "statement.go",
		"r.was = r.was || r.lost || state == wasHeld", "r.was = true",
		[]string{"TestF09UnlockOfAHoldThatIsGoneIsALoss"},
	},
	{
		"tokens come from the past", "lua/shared_read.lua",
		"local high = micros\n", "local high = math.max(last, micros) + size\n",
		[]string{"TestF10TokenCounterIsNeverAheadOfTheClock", "TestF10TokensOfLocalHoldsComeFromThePast"},
	},
	{
		"tokens go on from the counter", "lua/shared_read.lua",
		"math.max(last, high - size) + 1", "high - size + 1",
		[]string{"TestF10TokensGrowThoughTheClockStepsBack"},
	},
	{
		"tickets go on from the last", "lua/acquire.lua",
		"math.max(micros, tonumber(last[2] or 0) + 1)", "micros",
		[]string{"TestF10QueueKeepsItsOrderThoughTheClockStepsBack"},
	},
	{
		"tickets of named owners go on from the last", "lua/shared_queue.lua",
		"math.max(micros, tonumber(last[2] or 0) + 1)", "micros",
		[]string{"TestF10QueueKeepsItsOrderThoughTheClockStepsBack"},
	},
	{
		"the counter outlives its holders", "lua/release.lua",
		"'PEXPIRE', KEYS[1], keep)", "'PEXPIRE', KEYS[1], 0)",
		[]string{"TestF10CounterOutlivesItsHoldersByTheKeepTimeAndNoLonger"},
	},
	{
		"names with a tag have a part of their own", "internal/key/key.go",
		"prefix + \":ht:\"", "prefix + \":h:\"",
		[]string{"TestF11NamesDoNotCollide"},
	},
	{
		"owners' fields have a prefix", "lua/shared_state.lua",
		"'o:' ..", "''..",
		[]string{"TestF11OwnersDoNotCollideWithFields"},
	},
	{
		"an owner is the end of its record", "lua/shared_queue.lua",
		"(%d) (.*)$", "(%d) (%S*)",
		[]string{"TestF11WaitersOwnersAreReadBackAsGiven"},
	},
	{
		"WAIT is on the connection of its script", "internal/transport/replicas.go",
		"_ = p.Process(ctx, wait)\n\t_, err := p.Exec(ctx)\n", "_, err := p.Exec(ctx)\n\t_ = at.(redis.UniversalClient).Process(ctx, wait)\n",
		[]string{"TestReplicasThatAreSilentRefuseTheGrant"},
	},
	{
		"trust rests on what replicas have", "session.go",
		"if s.phase != held || acks < s.need().n {", "if s.phase != held {",
		[]string{
			"TestReplicasThatMissRenewalsEndTheHold", "TestReplicasOutliveAPartition",
			"TestReplicasAreNotNeededToUnlock", "TestReplicasTooFewLeaveTheOuterHoldAsItWas",
		},
	},
	{
		"a grant that too few replicas have is undone", "pubsub_wait.go",
		"s.maybe, s.doubt = true, max(s.doubt, notAfter) // it is to be released", "_ = notAfter",
		[]string{"TestReplicasTooFewUndoTheGrant", "TestReplicasThatAreSilentRefuseTheGrant"},
	},
	{
		"a hand-off counts when replicas have it", "pubsub_wait.go",
		" || s.isUnproven()", "",
		[]string{"TestReplicasConfirmAHandOff"},
	},
	{
		"a re-entry asks for its own replicas", "statement.go",
		"s.joining = w.lock.terms.replicas // from", "_ = 0 // from",
		[]string{"TestReplicasTooFewLeaveTheOuterHoldAsItWas"},
	},
	{
		"renewals that wait for replicas are apart", "watchdog.go",
		"of := lot{s.within(need), need, ttl}", "need.n, need.timeout = 1, 2*time.Second\n\t\t\tof := lot{3 * time.Second, need, ttl}",
		[]string{"TestReplicasOfOneLockDelayNoOther"},
	},
	{
		"a grant whose WAIT is refused is undone", "pubsub_wait.go",
		"s.maybe = true // the script may have run", "_ = 0 // the script may have run",
		[]string{"TestReplicasWithoutThePermission"},
	},
}
