-- Turns a session's write holds into read holds, without a gap. Waiting readers may join it in the same step.
-- KEYS[1] hash the lock's state
-- KEYS[2] zset the queue
-- ARGV[1] identity 'NONCE CLIENT o:OWNER' of the session
-- ARGV[2] op number of this statement, larger than any before it
-- ARGV[3] reads how many holds for reading the session has from now on; it has none for writing
-- ARGV[4] ttl ms from now that the lease lasts at least; 0: leave it as it is
-- ARGV[5] keep ms that the hash outlives the last deadline
-- ARGV[6] prefix of inboxes, which a client's ID completes
-- RETURNS now, ms that are left of the lease (0: not held), and more (1: ask again, the queue was too long for a call)
-- uses: read clock record run state sessions inbox queue conditions settle
inbox_prefix = ARGV[6]
local stated, op, ttl = read_identity(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[4])
local session = find_live(stated.nonce, stated.client, stated.owner)
if not session then
  return { now, 0, 0 }
end
touch(ttl, tonumber(ARGV[5]))
sweep_sessions()
if op > session.op then
  change(session, op, 0, tonumber(ARGV[3]), now + ttl)
end
return { now, session.deadline - now, finish(unsettled()) }
