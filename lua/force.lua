-- Ends the grant that has the given token, and nothing later: a copy of this
-- request that arrives after the lock has changed hands removes nobody.
-- KEYS[1] hash the lock's state
-- KEYS[2] zset the queue
-- ARGV[1] inbox channel prefix, a client's ID completes it
-- ARGV[2] owner whose grant is meant
-- ARGV[3] token the first token of that grant
-- ARGV[4] keep ms that the hash outlives the last holder
-- RETURNS removed (1 or 0), now, more (1: ask again, the queue was too long for one call)
local owner, nonce = ARGV[2], ''
-- uses: read state queue readers settle
inbox = ARGV[1]
local refused = open() or check_queue(state.shared)
if refused then
  return refused
end
local removed, keep = 0, tonumber(ARGV[4])
touch(state.owner and state.deadline - now or 0, keep)
local grant = state.grant and unpack_grant(state.grant)
if grant and #grant.sessions > 0 and grant.low == tonumber(ARGV[3]) then
  removed = 1
  for _, session in ipairs(grant.sessions) do
    if grant.mode == 'r' then
      redis.call('ZREM', KEYS[2], 'r' .. session.nonce)
      redis.call('HDEL', KEYS[1], 'r:' .. session.nonce)
    end
    tell(session.client, 'lost ' .. session.nonce)
  end
  if state.owner == owner then
    drop_grant()
  else
    redis.call('HDEL', KEYS[1], 'o:' .. owner)
  end
end
local more = 0
if state.queued > 0 then
  more = settle()
end
close()
if state.queued == 0 and not (state.owner or state.shared and readers_until()) then
  -- Nothing has a deadline any more but ended nonces: the keep time starts now.
  redis.call('PEXPIRE', KEYS[1], keep)
end
return { removed, now, more }
