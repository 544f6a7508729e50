-- Ends the grant that has the given token, and nothing later: a copy of this
-- request that arrives after the lock has changed hands removes nobody.
-- KEYS[1] hash the lock's state
-- KEYS[2] zset the queue
-- ARGV[1] inbox channel prefix, a client's ID completes it
-- ARGV[2] owner whose grant is meant
-- ARGV[3] token the first token of that grant
-- ARGV[4] keep ms that the hash outlives the last holder
-- RETURNS removed (1 or 0), now, more (1: ask again, the grant or the queue was too long
--   for one call)
local owner, nonce = ARGV[2], ''
-- uses: read state queue readers settle
inbox = ARGV[1]
local refused = open() or check_queue(state.shared)
if refused then
  return refused
end
local removed, more, keep = 0, 0, tonumber(ARGV[4])
touch(state.owner and state.deadline - now or 0, keep)
local grant = state.grant and unpack_grant(state.grant)
if grant and grant.sessions ~= '' and grant.low == tonumber(ARGV[3]) then
  removed = 1
  local from = 1
  for client, nonce, after in string.gmatch(grant.sessions, ' (%S+) (%S+) %d+ %d+ %d+ %d+()') do
    if budget <= 0 then
      more = 1
      break
    end
    budget = budget - 1
    from = after
    if grant.mode == 'r' then
      redis.call('ZREM', KEYS[2], 'r' .. nonce)
      redis.call('HDEL', KEYS[1], 'r:' .. nonce)
    end
    tell(client, 'lost ' .. nonce)
  end
  grant.sessions = string.sub(grant.sessions, from)
  if state.owner ~= owner then
    put_rest(owner, grant)
  elseif grant.sessions == '' then
    drop_grant()
  else
    store_grant(owner, grant)
  end
end
if state.queued > 0 then
  more = math.max(settle(), more)
end
close()
if state.queued == 0 and not (state.owner or state.shared and readers_until()) then
  -- Nothing has a deadline any more but ended nonces: the keep time starts now.
  redis.call('PEXPIRE', KEYS[1], keep)
end
return { removed, now, more }
