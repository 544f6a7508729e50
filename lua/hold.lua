-- States what a session holds: its count and its lease. Renewals, nested locks
-- and nested unlocks are this one statement; a later number overrides an earlier
-- one, so copies and re-ordered copies change nothing. One key, for every slot.
-- uses: state
-- KEYS[1] hash the lock's state
-- ARGV[1] client the session's client
-- ARGV[2] nonce the session's nonce
-- ARGV[3] owner whose grant the session belongs to
-- ARGV[4] op number of this statement, larger than any before it
-- ARGV[5] count holds that the session has from now on, at least 1
-- ARGV[6] ttl ms from now that the lease lasts at least; 0: as it is
-- ARGV[7] keep ms that the hash outlives the last deadline
-- RETURNS 1, now, low, high, remaining (held), or 0, now (not held, any more)
local refused = open(ARGV[3], ARGV[2])
if refused then
  return refused
end
if not held() or state.owner ~= ARGV[3] or not state.grant then
  return { 0, now }
end
local grant = unpack_grant(state.grant)
local session = find_session(grant, ARGV[1], ARGV[2])
if not session then
  return { 0, now }
end
local op, ttl = tonumber(ARGV[4]), tonumber(ARGV[6])
if op > session.op then
  session.op = op
  session.writes = tonumber(ARGV[5])
  session.deadline = math.max(session.deadline, now + ttl)
  touch(ttl, tonumber(ARGV[7]))
  store_grant(state.owner, grant)
end
return { 1, now, grant.low, grant.high, session.deadline - now }
