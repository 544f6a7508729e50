-- Hands the grant of one session to a ticket, until somebody resumes the ticket. Nobody renews the lease meanwhile.
-- KEYS[1] hash the lock's state
-- KEYS[2] zset the queue
-- ARGV[1] identity 'NONCE CLIENT o:OWNER' of the session, which holds once
-- ARGV[2] ticket the nonce that has the grant from now on; its client is '-', which has no inbox
-- ARGV[3] token of the hold: the first of the tokens that the ticket has
-- ARGV[4] reads 1 if the hold reads, 0 if it writes
-- ARGV[5] ttl ms from now after which the grant ends if nobody resumes it
-- ARGV[6] until server ms up to which a copy of the session's request may arrive and must be refused; 0: there is none
-- ARGV[7] keep ms that the hash outlives the last deadline
-- ARGV[8] prefix of inboxes, which a client's ID completes
-- RETURNS 1 (the ticket has the grant) or 0 (not held), and more (1: ask again, the queue was too long for one call)
-- uses: read clock record run state sessions inbox queue conditions settle
inbox_prefix = ARGV[8]
local stated, token, ttl = read_identity(ARGV[1]), tonumber(ARGV[3]), tonumber(ARGV[5])
local until_ms = math.min(tonumber(ARGV[6]), now + 60000)
touch(math.max(ttl, until_ms - now), tonumber(ARGV[7]))
sweep_sessions()
local session = find_live(stated.nonce, stated.client, stated.owner)
local has = not session or token >= session.low and token <= session.high
if not has then
  -- The lease of the hold had ended, and a late copy of its acquire was granted the lock again. The client does not
  -- know that, and others may have held in between.
  drop(session)
elseif session then
  if session == state.alone then
    -- The process has passed the grant on from call to call: the tokens before this one are used up.
    session.low, session.block = token, session.high - token + 1
  end
  local reads = tonumber(ARGV[4])
  change(session, session.op + 1, 1 - reads, reads, 0)
  move(session, ARGV[2] .. ' - ' .. string.match(session.identity, '^%S+ %S+ (.*)$'), 0, now + ttl)
elseif not find_live(ARGV[2], '-', '') then
  return { 0, 0 }
end
if until_ms > now then
  keep_ended(stated.nonce, until_ms)
end
return { has and 1 or 0, finish(unsettled()) }
