-- States what a session holds: its counts and its lease. Renewals, nested locks
-- and nested unlocks are this one statement; a later number overrides an earlier
-- one, so copies and re-ordered copies change nothing. A writer's has one key, so
-- that it works in a slot that migrates; the last write is given up by release or
-- downgrade, never here.
-- uses: state queue readers
-- KEYS[1] hash the lock's state
-- KEYS[2] zset the queue; only for a session that reads
-- ARGV[1] client the session's client
-- ARGV[2] nonce the session's nonce
-- ARGV[3] owner whose grant the session belongs to
-- ARGV[4] op number of this statement, larger than any before it
-- ARGV[5] writes holds for writing that the session has from now on
-- ARGV[6] reads holds for reading
-- ARGV[7] ttl ms from now that the lease lasts at least; 0: as it is
-- ARGV[8] keep ms that the hash outlives the last deadline
-- RETURNS 1, now, low, high, remaining (held), or 0, now (not held, any more)
local refused = open(ARGV[3], ARGV[2])
if refused then
  return refused
end
local writer = held() and state.owner == ARGV[3]
if not state.grant or not writer and not state.shared then
  return { 0, now }
end
local grant = unpack_grant(state.grant)
local session = find_session(grant, ARGV[1], ARGV[2])
if not session then
  return { 0, now }
end
local op, ttl, keep = tonumber(ARGV[4]), tonumber(ARGV[7]), tonumber(ARGV[8])
-- A writer's statement may find its session reading: the downgrade overtook it.
if op > session.op and (writer or KEYS[2]) then
  session.op = op
  session.writes, session.reads = tonumber(ARGV[5]), tonumber(ARGV[6])
  session.deadline = math.max(session.deadline, now + ttl)
  touch(ttl, keep)
  if writer and KEYS[2] and writes(grant) == 0 then
    -- Another process of the owner wrote, and its lease has ended.
    downgrade(ARGV[3], grant)
  elseif writer then
    store_grant(state.owner, grant)
  else
    put_reader(ARGV[3], grant, session)
  end
end
return { 1, now, grant.low, grant.high, session.deadline - now }
