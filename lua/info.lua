-- Reads a lock of any kind: who holds it and how many wait. Writes nothing.
-- KEYS[1] hash the lock's state
-- KEYS[2] zset the queue
-- ARGV[1] after the deadline at which the page of readers before ended, or 0
-- ARGV[2] size sessions that a page of readers has, but for more of one deadline
-- RETURNS now, kind ('' for a name that is not in use), waiters alive, the deadline at
--   which the page ended (0: there is no further page), and six for each holder:
--   owner, mode, holds, low, high, remaining ms
local owner, nonce = '', ''
-- uses: read state queue readers
local refused = open()
if refused then
  return refused
end
local waiting = redis.call('ZCOUNT', KEYS[2], '(' .. text(-far), '(' .. text(-now))
local after, size = tonumber(ARGV[1]), tonumber(ARGV[2])
local reply = { now, state.kind or '', waiting, 0 }

local function describe(owner)
  local packed = redis.call('HGET', KEYS[1], 'o:' .. owner)
  local grant = packed and unpack_grant(packed)
  if not grant or grant.sessions == '' then
    return
  end
  local holds, deadline = 0, deadline_at(grant.sessions)
  for _, _, _, writes, reads in each_session(grant) do
    holds = holds + writes + reads
  end
  for _, value in ipairs({ owner, grant.mode, holds, grant.low, grant.high, deadline - now }) do
    reply[#reply + 1] = value
  end
end

-- The shortest lease comes first: who is renewed between two pages comes later, and
-- is not passed over.
local function page_of_readers()
  local till = '(' .. text(-(math.max(after, now) + far))
  local left = redis.call('ZCOUNT', KEYS[2], '-inf', till)
  if left <= size then
    return redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', till)
  end
  local last = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', till, 'WITHSCORES', 'LIMIT', left - size, 1)[2]
  reply[4] = -tonumber(last) - far
  return redis.call('ZRANGEBYSCORE', KEYS[2], last, till)
end

if held() then
  if after == 0 then
    describe(state.owner)
  end
elseif state.shared then
  local seen = {}
  for _, member in ipairs(page_of_readers()) do
    local owner = redis.call('HGET', KEYS[1], 'r:' .. string.sub(member, 2))
    if owner and not seen[owner] then
      seen[owner] = true
      describe(owner)
    end
  end
end
return reply
