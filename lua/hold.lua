-- States what a session holds: its counts and its lease. Renewals, nested locks
-- and nested unlocks are this one statement; a later number overrides an earlier
-- one, so copies and re-ordered copies change nothing. A writer's has one key, so
-- that it works in a slot that migrates; the last write is given up by release or
-- downgrade, never here.
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
local client, nonce, owner = ARGV[1], ARGV[2], ARGV[3]
local op, ttl, keep = tonumber(ARGV[4]), tonumber(ARGV[7]), tonumber(ARGV[8])
-- uses: read

-- The one session of a writer goes on: the usual case, answered before the rest is
-- defined. The records are those of shared_state.
if not KEYS[2] and fields[6] then
  local low, high, last, deadline = string.match(fields[6], '^w (%d+) (%d+) %S+ %S+ (%d+) %d+ %d+ (%d+)$')
  local lease = ' ' .. client .. ' ' .. nonce .. ' '
  if low and fields[4] == deadline .. lease .. owner and tonumber(deadline) > now and op > tonumber(last) then
    local later = text(math.max(tonumber(deadline), now + ttl))
    local record = 'w ' .. low .. ' ' .. high .. lease .. ARGV[4] .. ' ' .. ARGV[5] .. ' ' .. ARGV[6] .. ' ' .. later
    redis.call('PEXPIRE', KEYS[1], ttl + keep, 'GT')
    if later == deadline then
      redis.call('HSET', KEYS[1], 'o:' .. owner, record)
    else
      redis.call('HSET', KEYS[1], 'o:' .. owner, record, 'holder', later .. lease .. owner)
    end
    return { 1, now, low, high, later - now }
  end
end
-- uses: state queue readers
local refused = open()
if refused then
  return refused
end
local writer = held() and state.owner == owner
if not state.grant or not writer and not state.shared then
  return { 0, now }
end
local grant = unpack_grant(state.grant)
local session = find_session(grant, client, nonce)
if not session then
  return { 0, now }
end
-- A writer's statement may find its session reading: the downgrade overtook it.
if op > session.op and (writer or KEYS[2]) then
  session.op = op
  session.writes, session.reads = tonumber(ARGV[5]), tonumber(ARGV[6])
  session.deadline = math.max(session.deadline, now + ttl)
  put_session(grant, session)
  touch(ttl, keep)
  if writer and KEYS[2] and not any_writes(grant) then
    -- Another process of the owner wrote, and its lease has ended.
    downgrade(owner, grant)
  elseif writer then
    store_grant(state.owner, grant)
  else
    put_reader(owner, grant, session)
  end
end
return { 1, now, grant.low, grant.high, session.deadline - now }
