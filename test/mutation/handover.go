package mutation

// handoverRules are those of holds that go by a ticket to whoever resumes it.
var handoverRules = []Rule{
	{
		"Close leaves time to give back what a Detach may have made", ". detaching.send",
		"closeGrace/2", "closeGrace",
		[]string{"TestADetachThatCloseInterruptsLeavesNoTicket"},
	},
	{
		"Close waits for a ticket that is given back", ". New",
		"len(c.registry.acquisitions) + c.registry.ticketReleases", "len(c.registry.acquisitions)",
		[]string{"TestADetachThatCloseInterruptsLeavesNoTicket"},
	},
	{
		"a ticket has what the session held", "lua/detach.lua",
		"  move(session, ARGV[2] .. ' - ' .. string.match(session.identity, '^%S+ %S+ (.*)$'), 0, now + ttl)\n", "  drop(session)\n",
		[]string{"TestWhoResumesHoldsUnderTheSameToken"},
	},
	{
		"a ticket lasts for its own time", "lua/detach.lua",
		"0, now + ttl)", "0, math.max(session.deadline, now + ttl))",
		[]string{"TestATicketThatNobodyResumesEnds"},
	},
	{
		"who waits is told that a ticket ends sooner", "lua/detach.lua",
		"finish(unsettled())", "finish(false)",
		[]string{"TestATicketThatNobodyResumesEnds"},
	},
	{
		"a ticket has the token of its hold", "lua/detach.lua",
		"session.low, session.block = token, session.high - token + 1", "session.low = token",
		[]string{"TestATicketHasTheTokenOfAHoldThatWasPassedOn"},
	},
	{
		"a copy of detach is answered as the first", "lua/detach.lua",
		"elseif not find_live(ARGV[2], '-', '') then", "else",
		[]string{"TestHandOverOutlivesLostReplies"},
	},
	{
		"a ticket has nothing once it was resumed", "lua/resume.lua",
		"  move(session, ARGV[2], tonumber(ARGV[3]), now + ttl)\n", "",
		[]string{"TestATicketWorksOnce"},
	},
	{
		"a copy of resume is answered as the first", "lua/resume.lua",
		"(find_live(asks.nonce, asks.client, asks.owner) or find_live(ARGV[1], '-', asks.owner))", "find_live(ARGV[1], '-', '')",
		[]string{"TestHandOverOutlivesLostReplies"},
	},
	{
		"what is resumed is renewed by its own identity", "lua/shared_sessions.lua",
		"redis.call('HSET', KEYS[1], 'holder', identity, 'until', deadline,", "redis.call('HSET', KEYS[1], 'holder', s.identity, 'until', deadline,",
		[]string{"TestWhoResumesHoldsUnderTheSameToken"},
	},
	{
		"a hold goes alone", "internal/room Hold.Detach",
		"if s.holds.len() != 1 || s.Ledger.Needs() != ledger.One(h.Read) {", "if false {",
		[]string{"TestAHoldBesideOthersOfItsOwnerIsNotHandedOver"},
	},
	{
		"what was handed over is over here", "internal/room Hold.Detach",
		"s.dismiss(at); s.leaveRoom(at); return true", "return true",
		[]string{"TestUnlockBesideADetachReturnsWhatComesOfIt"},
	},
	{
		"a ticket that nobody was given is released", ". detaching.releaseTicket",
		"err := try(ctx); left()", "var err error; left()",
		[]string{"TestATicketThatNobodyWasGivenIsReleased"},
	},
	{
		"what could not be handed over is released", ". detaching.send",
		"d.undo()", "",
		[]string{"TestDetachThatIsCutShortReleases", "TestATicketThatNobodyWasGivenIsReleased"},
	},
	{
		"a resumption that meets Close says so", ". waiting.deadTicket",
		"return ErrClosed", "break",
		[]string{"TestAResumptionThatMeetsCloseSaysSo"},
	},
	{
		"a resume that is given up is released", ". waiting.resume",
		"a.giveUp()", "",
		[]string{"TestResumeThatIsCutShortReleases", "TestAResumptionWhoseRedisHookDoesNotReturnLeavesNothing"},
	},
	{
		"a changed ticket is seen", ". Ticket.read",
		"t.text() != text", "false",
		[]string{"TestATicketThatWasChangedIsRefused"},
	},
	{
		"what no Detach could write is no ticket", ". ticket.lock",
		"return nil, errTicket", "",
		[]string{"TestATicketThatNoDetachCouldMakeIsRefused"},
	},
	{
		"a ticket is of one key prefix", ". ticket.lock",
		"if t.Prefix != c.cfg.prefix {", "if false {",
		[]string{"TestATicketOfAnotherPrefixIsRefused"},
	},
	{
		"a fixed lease is resumed by a request that was sent again", ". waiting.resume",
		"h, err := w.confirmed(a)", "h, err := w.hold, error(nil); if h == nil { err = errGone }",
		[]string{"TestAFixedLeaseIsResumedThoughTheReplyIsLost"},
	},
	{
		"a resumption that is not confirmed is given up once", ". waiting.resume",
		"err != nil { return nil, w.deadTicket(err)", "err != nil { a.giveUp(); return nil, w.deadTicket(err)",
		[]string{"TestAResumptionThatIsNotConfirmedIsGivenUpOnce"},
	},
	{
		"a late copy of an acquire gets nothing of a ticket", "lua/detach.lua",
		"keep_ended(stated.nonce, until_ms)", "local _ = until_ms",
		[]string{"TestALateCopyOfAnAcquireGetsNothingOfATicket"},
	},
	{
		"a copy of an answered acquire is no part of what a ticket has", "lua/acquire.lua",
		"if session and not dead or handed_over(request) then", "if session and not dead then",
		[]string{"TestACopyOfAnAnsweredAcquireIsNoPartOfWhatATicketHas"},
	},
	{
		"a copy of an answered acquire does not queue behind its ticket", "lua/acquire.lua",
		"owner ~= its_owner and ", "",
		[]string{"TestACopyOfAnAnsweredAcquireDoesNotQueueBehindItsTicket"},
	},
	{
		"what is handed over is the grant of its token", "lua/detach.lua",
		"not session or token >= session.low and token <= session.high", "true",
		[]string{"TestAHoldThatWasLostBeforeItIsHandedOverIsLost"},
	},
	{
		"a hold is handed over to its owner only", "lua/resume.lua",
		"find_live(ARGV[1], '-', asks.owner))", "find_live(ARGV[1], '-', ''))",
		[]string{"TestATicketIsResumedForItsOwnerOnly"},
	},
	{
		"an anonymous hold keeps its made name", ". Hold.ticket",
		"Owner: a.owner(),", "Owner: a.Name,",
		[]string{"TestWhoResumesHoldsUnderTheSameToken"},
	},
	{
		"a made name names nobody after it was handed over", "internal/room Acquisition.Named",
		"&& a.Name[0] != MadeMark", "",
		[]string{"TestAnAnonymousHoldIsAnonymousOnceItIsResumed"},
	},
	{
		"a label lives as long as the lease of what was resumed", ". Client.Resume",
		"c.labels.Keep(l.terms.TTL, w.began)", "",
		[]string{"TestLabelLastsAsLongAsTheLeaseOfAResumedHold"},
	},
	{
		"a ticket is for redis clients that suit its terms", ". ticket.lock",
		"if err := s.terms.suits(c.transport); err != nil {", "if err := error(nil); err != nil {",
		[]string{"TestATicketWhoseReplicasTakeAsLongAsAReadIsRefused"},
	},
	{
		"a resume without a hold is told to the trace", ". Client.Resume",
		"w.gaveUpHook(err)", "",
		[]string{"TestGaveUpHookIsToldOfAResumeWithoutItsHold"},
	},
	{
		"a ticket of a call whose hook panics is released", ". Hold.detach",
		"if !given {", "if !given && err != nil {",
		[]string{"TestADetachWhoseHookPanicsLeavesNoTicket"},
	},
	{
		"a ticket that nobody was given is released however late", ". detaching.releaseTicket",
		"if err != nil {", "if false && err != nil {",
		[]string{"TestATicketThatNobodyWasGivenIsReleasedAfterALongOutage"},
	},
	{
		"a detach that failed is in the way of no later attempt", ". detaching.releaseTicket",
		"c.leaving.Begin(d.a.keeper.hash)", "func() {}",
		[]string{"TestAnAttemptFindsFreeWhatADetachThatFailedHasLeft"},
	},
	{
		"no ticket keeps a shutdown", ". detaching.releaseTicket",
		"context.WithTimeout(c.open, d.keep)", "context.WithTimeout(c.ctx, d.keep)",
		[]string{"TestShutdownWaitsNoLongerForATicketThanForALease", "TestShutdownWaitsNoLongerForATicketWhoseHookDoesNotReturn"},
	},
	{
		"a Detach that Redis refuses says that the hold has ended", ". detaching.send",
		"case within.Err() != nil && c.refusing.Load():", "case transport.Hopeless(err): return &requestError{err: err}; case within.Err() != nil && c.refusing.Load():",
		[]string{"TestADetachThatIsRefusedByRedisReleases"},
	},
	{
		"a Detach during a wait leaves the hold", ". Hold.detach",
		"if !h.hold.Released && h.hold.Lost {",
		"if err == errAbsent { h.hold.GiveBack(&at) } else if !h.hold.Released && h.hold.Lost {",
		[]string{"TestADetachDuringAWaitOfItsOwnerIsRefused"},
	},
	{
		"a ticket is of letters, digits and two marks", ". ticket.text,Ticket.read",
		"base64.RawURLEncoding", "base64.RawStdEncoding",
		[]string{"TestATicketIsOfLettersDigitsAndTwoMarks"},
	},
	{
		"a Detach whose context ends says so, whatever the try before said", ". detaching.send",
		"case ctx.Err() != nil:", "case false:",
		[]string{"TestDetachThatRedisRefusesUntilItsContextEndsSaysBoth"},
	},
}
