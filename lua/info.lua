-- Reads a lock of any kind: who holds it and how many wait. Writes nothing.
-- uses: state
-- KEYS[1] hash the lock's state
-- KEYS[2] zset the queue
-- RETURNS now, kind ('' for a name that is not in use), waiters alive, and six for
--   each holder: owner, mode, holds, low, high, remaining ms
local refused = open('', '')
if refused then
  return refused
end
local waiting = redis.call('ZCOUNT', KEYS[2], '-inf', '(' .. text(-now))
local reply = { now, state.kind or '', waiting }
local packed = held() and redis.call('HGET', KEYS[1], 'o:' .. state.owner)
if packed then
  local grant = unpack_grant(packed)
  local holds = 0
  for _, session in ipairs(grant.sessions) do
    holds = holds + session.writes + session.reads
  end
  for _, value in ipairs({ state.owner, grant.mode, holds, grant.low, grant.high, state.deadline - now }) do
    reply[#reply + 1] = value
  end
end
return reply
