-- Makes a session's write holds read holds: it goes on without a gap, and other
-- readers may join it in the same step.
-- KEYS[1] hash the lock's state
-- KEYS[2] zset the queue
-- ARGV[1] inbox channel prefix, a client's ID completes it
-- ARGV[2] client the session's client
-- ARGV[3] nonce the session's nonce
-- ARGV[4] owner whose grant the session belongs to
-- ARGV[5] op number of this statement, larger than any before it
-- ARGV[6] reads holds for reading that the session has from now on; none for writing
-- ARGV[7] ttl ms from now that the lease lasts at least; 0: as it is
-- ARGV[8] keep ms that the hash outlives the last deadline
-- RETURNS 1, now, low, high, remaining (held), or 0, now (not held, any more); and
--   more (1: ask again, the queue was too long for one call)
local owner, nonce = ARGV[4], ARGV[3]
-- uses: read state queue readers settle
inbox = ARGV[1]
local refused = open() or check_queue(state.shared)
if refused then
  return refused
end
local grant = state.grant and unpack_grant(state.grant)
local session = grant and find_session(grant, ARGV[2], nonce)
if not session then
  return { 0, now, 0 }
end
local op, ttl, keep = tonumber(ARGV[5]), tonumber(ARGV[7]), tonumber(ARGV[8])
touch(ttl, keep)
if op > session.op then
  session.op = op
  session.writes, session.reads = 0, tonumber(ARGV[6])
  session.deadline = math.max(session.deadline, now + ttl)
  put_session(grant, session)
end
if state.owner == owner then
  if not any_writes(grant) then
    downgrade(owner, grant)
  else
    store_grant(owner, grant)
  end
else
  put_reader(owner, grant, session)
end
local more = 0
if state.queued > 0 then
  more = settle()
end
close()
return { 1, now, grant.low, grant.high, session.deadline - now, more }
