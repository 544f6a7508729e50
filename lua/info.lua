-- Reads a lock of any kind: who holds it and how many wait. Writes nothing.
-- KEYS[1] hash the lock's state
-- KEYS[2] zset the queue
-- RETURNS now, kind ('' for a name that is not in use), waiters alive, and six for
--   each holder: owner, mode, holds, low, high, remaining ms
local owner, nonce = '', ''
-- uses: read state queue readers
local refused = open()
if refused then
  return refused
end
local waiting = redis.call('ZCOUNT', KEYS[2], '(' .. text(-far), '(' .. text(-now))
local reply = { now, state.kind or '', waiting }

local function describe(owner)
  local packed = redis.call('HGET', KEYS[1], 'o:' .. owner)
  local grant = packed and unpack_grant(packed)
  if not grant or #grant.sessions == 0 then
    return
  end
  local holds, deadline = 0, 0
  for _, session in ipairs(grant.sessions) do
    holds = holds + session.writes + session.reads
    deadline = math.max(deadline, session.deadline)
  end
  for _, value in ipairs({ owner, grant.mode, holds, grant.low, grant.high, deadline - now }) do
    reply[#reply + 1] = value
  end
end

if held() then
  describe(state.owner)
elseif state.shared then
  local seen = {}
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', '(' .. text(-(now + far)))) do
    local owner = redis.call('HGET', KEYS[1], 'r:' .. string.sub(member, 2))
    if owner and not seen[owner] then
      seen[owner] = true
      describe(owner)
    end
  end
end
return reply
