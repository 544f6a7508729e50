-- Takes over the grant that a ticket has. That works once: afterwards the ticket has nothing.
-- KEYS[1] hash the lock's state
-- KEYS[2] zset the queue
-- ARGV[1] ticket the nonce that has the grant
-- ARGV[2] identity 'NONCE CLIENT o:OWNER' of the session that takes it over; its owner must be the ticket's
-- ARGV[3] op number of the request
-- ARGV[4] not_after server microseconds; a copy that arrives later changes nothing
-- ARGV[5] ttl lease in ms from now
-- ARGV[6] keep ms that the hash outlives the last deadline
-- ARGV[7] prefix of inboxes, which a client's ID completes
-- RETURNS as acquire: now, more (1: ask again, the queue was too long for one call), and 1 low high remaining wanted
--   (held; wanted as in acquire) or -4 0 0 0 '' (the ticket has no grant); or now, 0, -2 (late)
-- uses: read clock record run state sessions inbox queue conditions settle
inbox_prefix = ARGV[7]
local not_after, ttl, asks = tonumber(ARGV[4]), tonumber(ARGV[5]), read_identity(ARGV[2])
if not_after <= micros or not_after > micros + 60000000 then
  return { now, 0, -2 }
end
local ended = state.ended and redis.call('HGET', KEYS[1], 'e:' .. asks.nonce)
local session = not ended and (find_live(asks.nonce, asks.client, asks.owner) or find_live(ARGV[1], '-', asks.owner))
if not session then
  return { now, 0, -4, 0, 0, 0, '' }
end
touch(ttl, tonumber(ARGV[6]))
sweep_sessions()
local more = 0
if session.nonce == ARGV[1] then
  move(session, ARGV[2], tonumber(ARGV[3]), now + ttl)
  more = finish(unsettled())
end
return { now, more, 1, session.low, session.high, session.deadline - now, wanting(session.owner) > 0 and '+' or '' }
