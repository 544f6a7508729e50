package mutation

// Safety are those of docs/protocol.md without which there are two holders
// or a token that goes down (F01 to F11 of docs/faults.md), each taken out in one place.
var Safety = []Rule{
	{
		"the end of one holder spares the others", ". forceHolder",
		`if h.Owner != "" && one.Owner != h.Owner || h.Token != 0 && one.Token != h.Token {`, "if false {",
		[]string{"TestForceUnlockHolderEndsThatGrantAndNoOther", "TestForceUnlockHolderSparesALaterGrant"},
	},
	{
		"the end of one holder compares all digits of the token", ". forceHolder",
		", wire.Token(wire.Instant(h.Token), h.Owner) != h.Token:", ":",
		[]string{"TestForceUnlockHolderOnARealServer"},
	},
	{
		"nobody in particular is not whoever holds", ". forceHolder",
		`case h.Owner == "" && h.Token == 0:`, "case false:",
		[]string{"TestForceUnlockHolderOfNobodyIsAnInvalidOption"},
	},
	{
		"the holder is an acquisition, not a process", "lua/acquire.lua",
		"    local last =", "    if its_client == client then\n      return { now, 0, 1, tonumber(fields[3]), tonumber(fields[3]), ends - now, '' }\n    end\n    local last =",
		[]string{"TestF01AcquireThatOvertakesTheReleaseOfItsOwnProcessWaits"},
	},
	{
		"a session is found by client and nonce", "lua/shared_sessions.lua",
		"s.nonce == nonce and s.client == client and (owner == '' or s.owner == owner)", "s.client == client and (owner == '' or s.owner == owner)",
		[]string{"TestF01ReleaseSentAgainDoesNotEndTheNextHoldOfItsOwner", "TestF16ReleaseSentAgainFreesNoLaterHold"},
	},
	{
		"an owner is not a session", "lua/shared_sessions.lua",
		"s.nonce == nonce and s.client == client and (owner == '' or s.owner == owner)", "s.owner == (owner == '' and s.owner or owner)",
		[]string{
			"TestF09LeaveSentAgainDoesNotEndTheGrantOfTheSameOwner",
			"TestF09PollOfOneRequestIsNotAnsweredByAnotherOfItsOwner",
		},
	},
	{
		"a grant lasts until its last session", "lua/shared_sessions.lua",
		"if grant.sessions <= 0 then", "if true then",
		[]string{"TestF02HoldsOfOneOwnerInTwoProcessesEndOneByOne"},
	},
	{
		"a statement overrides older ones only", "lua/hold.lua",
		"op + 0 <= last + 0 or ", "",
		[]string{"TestF02LateCopyOfACountChangesNothing", "TestF02StatementsThatArriveInTheWrongOrderCountTheLastOne"},
	},
	{
		"a session ends by its own deadline", "lua/shared_sessions.lua",
		"if not state.several or not KEYS[2] then\n    return", "if true then\n    return",
		[]string{"TestF02HoldsOfADeadProcessEndThoughAnotherRenews"},
	},
	{
		"a request that holds already has the rest of its lease", "lua/acquire.lua",
		"return held(session)\n", "return held(setmetatable({ deadline = now + request.ttl }, { __index = session }))\n",
		[]string{"TestF03aAcquireSentAgainIsTrustedNoLongerThanItsLease"},
	},
	{
		"no deadline moves earlier", "lua/hold.lua",
		"math.max(", "select(2, ",
		[]string{"TestF03bNestedShorterLeaseShortensNothing"},
	},
	{
		"no queue's TTL moves earlier", "lua/acquire.lua",
		"PEXPIRE', KEYS[2], ARGV[8], 'GT')", "PEXPIRE', KEYS[2], ARGV[8])",
		[]string{
			"TestEveryStatementLeavesALockAsIsPromised",
		},
	},
	{
		"a message is trusted from the last heartbeat", "internal/room Entry.Granted",
		"!e.grant(low, high, sent,", "sent.IsZero() || !e.grant(low, high, at.Now,",
		[]string{"TestF03cGrantReadLateIsTrustedFromTheLastHeartbeat"},
	},
	{
		"a renewal that finds nothing is a loss", "internal/room Statement.Stated",
		"s.Lose(ErrRemoved, at); return Over", "return Known",
		[]string{"TestF03dHoldThatAServerWithALaterClockEndedIsLostAtTheNextRenewal"},
	},
	{
		"a grant that was forced before its answer came is no hold", "internal/room Entry.grant",
		"e.revoked != nil", "false",
		[]string{"TestAGrantThatWasForcedBeforeItsAnswerCameIsNoHold", "TestABranchIsNotGrantedWhatItsAncestorHasEndedMeanwhile"},
	},
	{
		"a message of a loss is not about later requests", "internal/room Entry.NextRequest",
		"e.wantedByMessage, e.revoked = false, nil", "e.wantedByMessage = false",
		[]string{"TestAWaiterBelievesTheGrantAfterALateMessageOfALoss"},
	},
	{
		"what a renewal of many leaves is stated", ". watchdog.renewTogether",
		"again[i] = batch[of].Session", "again[i] = batch[of].Session; again = again[:0]",
		[]string{"TestF03dOneOfManyHoldsThatIsGoneIsLostAlone"},
	},
	{
		"a lease that has passed is not renewed", "lua/hold.lua",
		"if ends and ends <= now then", "if false then",
		[]string{"TestF03dLeaseThatHasPassedIsNotRevived", "TestF03dLeasesThatHavePassedAreNotRevivedTogether"},
	},
	{
		"trust is shorter than the lease", "internal/trust Margin",
		"{ return lease/100 + 2*time.Millisecond }", "{ return 0 * lease }",
		[]string{"TestF03dTrustEndsBeforeTheLeaseOnAClockThatIsOnePercentFast", "TestExplorationOfRoomsFindsNothing"},
	},
	{
		"no lease is trusted for longer than was asked for", "internal/room Acquisition.trustedUntil, Session.trustEnds", // each bounds it
		"trust.Until($x, $y)", "trust.Until($x, $y+time.Hour)",
		[]string{"TestF03dTrustDoesNotOutliveAClockThatStepsBackAndReturns"},
	},
	{
		"a grant is believed for a known nonce", ". Client.deliver",
		"if a == nil { if m.Verb", "if a == nil { c.registry.mu.Lock(); for _, a = range c.registry.acquisitions { }; c.registry.mu.Unlock() }; if a == nil { if m.Verb",
		[]string{"TestF04ForgedGrantIsNotBelieved", "TestF04ReplayedGrantIsNotBelieved"},
	},
	{
		"a later answer overrules a grant", "internal/room Entry.Granted",
		"sent, known := e.sentAt(op); if !known ||", "sent := at.Now; if",
		[]string{"TestF04GrantThatALaterAnswerOverruledIsNotBelieved"},
	},
	{
		"an unknown grant is given back", ". Client.deliver",
		"c.disown(m.Nonce, nil, instant{})", "_ = 0",
		[]string{"TestF04GrantThatNobodyWaitsForIsPassedOn"},
	},
	{
		"a client's name is not its inbox", ". acquisition.owner",
		"append(text, room.MadeMark), a.keeper.c.ownerPrefix...", "append(text, room.MadeMark), a.keeper.c.id...",
		[]string{"TestF04SecretsStayInTheProtocol"},
	},
	{
		"an inbox is under the key prefix", "internal/key Inbox",
		"return prefix + \":inbox:\" + client", "return \"relock:inbox:\" + client",
		[]string{"TestF04InboxIsNamedUnderTheKeyPrefix"},
	},
	{
		"a place outlives its entry", "lua/acquire.lua",
		"= request.asks_place, now", "= 0, now",
		[]string{
			"TestF05WaiterWithoutASubscriptionKeepsItsPlace",
			"TestF05WaitersThatLoseAllSubscriptionsAtOnceKeepTheirOrder",
		},
	},
	{
		"a hand-off gives the rest of the entry's lease", "lua/shared_settle.lua",
		"  put(waiter, grant)\n", "  waiter.deadline = now + 30000\n  put(waiter, grant)\n",
		[]string{"TestF05FrozenWaitersTogetherCostOneLease"},
	},
	{
		"a dead entry is passed over", "lua/shared_settle.lua",
		"if waiter.deadline <= now then", "if false then",
		[]string{"TestF05EntryPastItsDeadlineIsPassedOver"},
	},
	{
		"a heartbeat finds its own grant", "lua/acquire.lua",
		"if session and not dead or handed_over(request) then", "if session and not dead and request.named then",
		[]string{"TestF05GrantThatIsNotHeardCostsAHeartbeat"},
	},
	{
		"heartbeats come every ten seconds at least", "internal/trust Pulse",
		"return min(lease/3, longestPulse)", "return lease / 3",
		[]string{"TestF05LostMessageCostsTenSecondsAtMost"},
	},
	{
		"an inbox without an echo is replaced", "internal/listener Listeners.Check",
		"l.Suspect()", "_ = 0",
		[]string{"TestF05HalfOpenInboxIsReplaced"},
	},
	{
		"waiters keep a name's kind", "lua/acquire.lua",
		"KEYS[2] and waited_for()", "false",
		[]string{"TestF06KindOutlivesADeadHolderWhileSomebodyWaits"},
	},
	{
		"a holder keeps its name's kind", "lua/acquire.lua",
		"and (blocked() or KEYS[2] and", "and (KEYS[2] and",
		[]string{"TestF06NameChangesItsKindOnlyWhenNobodyHolds"},
	},
	{
		"a waiter hears of another kind", "internal/room Request.BeatAnswered",
		"case said.Code == OfKind, said", "case said",
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
		"if not_after <= micros or not_after > micros + 60000000 then", "if false then",
		[]string{"TestF08CopyThatArrivesAfterItsTimeGrantsNothing"},
	},
	{
		"a refusal tells the server's time", ". waiting.sendOnce",
		"k.noteServerClock(now)", "_ = now",
		[]string{"TestF08ServerWhoseClockIsOtherwiseIsLockedAllTheSame"},
	},
	{
		"every server has a clock of its own", ". keeper.serverNow",
		"time.Now().UnixMilli() + k.skew.Load()", "time.Now().UnixMilli() + k.c.latestSkew.Load()",
		[]string{"TestF08WaitersOfAClusterKeepTheirPlacesThoughItsClocksDiffer"},
	},
	{
		"a ForceUnlock is of one token", "lua/force.lua",
		"alone.low == token and ", "",
		[]string{"TestF09CopyOfAForceUnlockLeavesTheNextGrantOfTheSameOwner"},
	},
	{
		"an unanswered ForceUnlock may have worked", ". forceOne",
		"|| removed || unanswered", "|| removed || unanswered && false",
		[]string{"TestF09ForceUnlockSentAgainDoesNotRemoveTheSuccessor"},
	},
	{
		"a ForceUnlock tells the loser", "lua/force.lua",
		"tell(alone.client, 'lost ' .. alone.nonce)", "",
		[]string{"TestF09LoserOfAForceUnlockIsToldAtOnce"},
	},
	{
		"an unanswered release may have worked", ". releasing.try",
		"r.wasHeld = r.wasHeld || r.unanswered || state == wire.WasHeld", "r.wasHeld = r.wasHeld || state == wire.WasHeld",
		[]string{"TestF09UnlockWhoseReplyIsLostIsNoLoss"},
	},
	{
		"an answered release says what it found", ". releasing.try",
		"r.wasHeld = r.wasHeld || r.unanswered || state == wire.WasHeld", "r.wasHeld = true",
		[]string{"TestF09UnlockOfAHoldThatIsGoneIsALoss"},
	},
	{
		"tokens come from the past", "lua/shared_clock.lua",
		"local high = micros\n", "local high = math.max(last, micros) + size\n",
		[]string{"TestF10TokenCounterIsNeverAheadOfTheClock"},
	},
	{
		"tokens go on from the counter", "lua/shared_clock.lua",
		"math.max(last, high - size) + 1", "high - size + 1",
		[]string{"TestF10TokensGrowThoughTheClockStepsBack"},
	},
	{
		"places go on from the last", "lua/acquire.lua",
		"last and last[2] + 1 or micros", "micros",
		[]string{"TestF10QueueKeepsItsOrderThoughTheClockStepsBack"},
	},
	{
		"places of named owners go on from the last", "lua/shared_queue.lua",
		"math.max(micros, tonumber(last[2] or 0) + 1)", "micros",
		[]string{"TestF10QueueKeepsItsOrderThoughTheClockStepsBack"},
	},
	{
		"the counter outlives its holders", "lua/release.lua",
		"redis.call('PEXPIRE', KEYS[1], ARGV[5] + math.max(ahead, 0))", "redis.call('PEXPIRE', KEYS[1], 0)",
		[]string{"TestF10CounterOutlivesItsHoldersByTheKeepTimeAndNoLonger"},
	},
	{
		"names with a tag have a part of their own", "internal/key Hash",
		"prefix + \":ht:\"", "prefix + \":h:\"",
		[]string{"TestF11NamesDoNotCollide"},
	},
	{
		"owners' fields have a prefix", "lua/shared_sessions.lua",
		"'g:' ..", "''..",
		[]string{"TestF11OwnersDoNotCollideWithFields"},
	},
	{
		"an owner is the end of its record", "lua/shared_record.lua",
		"o:(.*)$", "o:(%S*)",
		[]string{"TestF11WaitersOwnersAreReadBackAsGiven"},
	},
	{
		"a WAIT that was not sent tells nothing of its script", "internal/transport exchange",
		"w == nil || results[i].Err != nil", "w == nil",
		[]string{"TestACallWithReplicasThatIsNotSentHasNotRun"},
	},
	{
		"a WAIT that is refused is told", "internal/transport exchange",
		"if results[i].Acks = n; failed != nil {", "if results[i].Acks = n; false {",
		[]string{"TestAServerThatRefusesWaitSaysSo"},
	},
	{
		"a pipeline tells why its connection was not made", "internal/transport exchange",
		"failed = err", "_ = err",
		[]string{"TestACallWithReplicasSaysThatItsCredentialsAreRefused"},
	},
	{
		"WAIT is on the connection of its script", "internal/transport exchange",
		"_ = p.Process(ctx, wait) } _, err := p.Exec(ctx)", "}; _, err := p.Exec(ctx); if w != nil { _ = at.(redis.UniversalClient).Process(ctx, wait) }",
		[]string{"TestReplicasThatAreSilentRefuseTheGrant"},
	},
	{
		"trust rests on what replicas have", "internal/room Session.extend",
		"if s.Over || acks < s.Need().N {", "if s.Over {",
		[]string{
			"TestReplicasThatMissRenewalsEndTheHold", "TestReplicasOutliveAPartition",
			"TestReplicasTooFewLeaveTheOuterHoldAsItWas",
		},
	},
	{
		"a grant that too few replicas have is undone", "internal/room Request.Answered",
		"said.Code, a.keepsDoubt = Ended, true", "said.Code, a.keepsDoubt = Ended, a.keepsDoubt || !short",
		[]string{"TestReplicasTooFewUndoTheGrant", "TestReplicasThatAreSilentRefuseTheGrant"},
	},
	{
		"a hand-off counts when replicas have it", "internal/room Session.ToConfirm",
		"|| s.unproven && !s.Over", "",
		[]string{"TestReplicasConfirmAHandOff"},
	},
	{
		"a re-entry asks for its own replicas", "internal/room Session.Need",
		"need = need.or(Replicas{n, timeout})", "_, _ = n, timeout",
		[]string{"TestReplicasTooFewLeaveTheOuterHoldAsItWas"},
	},
	{
		"renewals that wait for replicas are apart", "internal/room Session.Due",
		"r = Renewal{Lease: lease, Within: need.Within(s.shortest(at.Now)), Need: need}", "need.N, need.Timeout = 1, 2*time.Second; r = Renewal{Lease: lease, Within: 3 * time.Second, Need: need}",
		[]string{"TestReplicasOfOneLockDelayNoOther"},
	},
	{
		"a grant whose WAIT is refused is undone", ". waiting.sendOnce",
		"f.Unknown = f.Unknown || need.N > 0 && transport.Hopeless(err)", "",
		[]string{"TestReplicasWithoutThePermission"},
	},
}
