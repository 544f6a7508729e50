-- Ends the grant that has the given token, and nothing later: a copy of this
-- request that arrives after the lock has changed hands removes nobody.
-- uses: state queue settle
-- KEYS[1] hash the lock's state
-- KEYS[2] zset the queue
-- ARGV[1] inbox channel prefix, a client's ID completes it
-- ARGV[2] token the first token of the grant that is meant
-- ARGV[3] keep ms that the hash outlives the last holder
-- RETURNS removed (1 or 0), now, more (1: ask again, the queue was too long for one call)
inbox = ARGV[1]
local refused = open('', '') or check_queue()
if refused then
  return refused
end
local removed = 0
touch(state.owner and state.deadline - now or 0, tonumber(ARGV[3]))
if held() then
  local packed = redis.call('HGET', KEYS[1], 'o:' .. state.owner)
  local grant = packed and unpack_grant(packed) or { sessions = {} }
  if grant.low == tonumber(ARGV[2]) then
    removed = 1
    drop_grant()
    for _, session in ipairs(grant.sessions) do
      tell(session.client, 'lost ' .. session.nonce)
    end
  end
end
local more = 0
if state.queued > 0 then
  more = settle()
end
close()
return { removed, now, more }
