-- Readers hold together, each for a lease of its own. Their sessions stand in the
-- queue's ZSET too: 'r' and the nonce, scored by minus (deadline + far), so that
-- they come before all that waits, the longest lease first. Every step on one
-- reader costs the same among ten and among ten thousand.

local far = 100000000000000

-- The deadline of the last reader, or nil where nobody reads.
local function readers_until()
  local last = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2]
  local deadline = last and -tonumber(last) - far or 0
  if deadline > now then
    return deadline
  end
end

-- The instant until which a writer cannot have the lock, or nil.
local function blocked()
  if state.owner then
    return state.deadline
  end
  return state.shared and readers_until() or nil
end

local function put_reader(owner, grant, session, ...)
  add_to_queue(session.deadline, text(-(session.deadline + far)), 'r' .. session.nonce)
  redis.call('HSET', KEYS[1], 'o:' .. owner, pack_grant(grant), 'r:' .. session.nonce, owner, ...)
end

-- Stores a grant that may have lost sessions.
local function put_rest(owner, grant)
  if grant.sessions == '' then
    redis.call('HDEL', KEYS[1], 'o:' .. owner)
  else
    redis.call('HSET', KEYS[1], 'o:' .. owner, pack_grant(grant))
  end
end

local function drop_reader(owner, grant, session)
  cut_session(grant, session)
  redis.call('ZREM', KEYS[2], 'r' .. session.nonce)
  redis.call('HDEL', KEYS[1], 'r:' .. session.nonce)
  put_rest(owner, grant)
end

-- A writer that has only reads left becomes a reader: others may join it now. Its
-- sessions change together: some hundreds in a command, which Lua's stack bounds. It
-- stops to be the holder last: where the queue's key is not ours it goes on as it was.
local function downgrade(owner, grant)
  grant.mode = 'r'
  local longest = tonumber((deadline_at(grant.sessions)))
  local members, owners = {}, { 'o:' .. owner, pack_grant(grant) }
  local function write()
    add_to_queue(longest, unpack(members))
    redis.call('HSET', KEYS[1], unpack(owners))
    members, owners = {}, {}
  end
  for _, nonce, _, _, _, deadline in each_session(grant) do
    members[#members + 1], members[#members + 2] = text(-(deadline + far)), 'r' .. nonce
    owners[#owners + 1], owners[#owners + 2] = 'r:' .. nonce, owner
    if #members >= 1000 then
      write()
    end
  end
  if #members > 0 then
    write()
  end
  redis.call('HDEL', KEYS[1], 'holder')
  state.owner = nil
end

-- Whether any session of the grant writes.
local function any_writes(grant)
  for writes in string.gmatch(grant.sessions, ' %S+ %S+ %d+ (%d+) %d+ %d+') do
    if writes ~= '0' then
      return true
    end
  end
  return false
end

-- Forgets readers past their deadline, at most limit of them. What is left of an
-- owner's grant is written once, however many of its sessions have ended.
local function sweep_readers(limit)
  local dead = redis.call('ZRANGEBYSCORE', KEYS[2], text(-(now + far)), '(' .. text(-far), 'LIMIT', 0, limit)
  local owners = {}
  for _, member in ipairs(dead) do
    local field = 'r:' .. string.sub(member, 2)
    local owner = redis.call('HGET', KEYS[1], field)
    redis.call('ZREM', KEYS[2], member)
    redis.call('HDEL', KEYS[1], field)
    if owner then
      owners[owner] = true
    end
  end
  for owner in pairs(owners) do
    local packed = redis.call('HGET', KEYS[1], 'o:' .. owner)
    if packed then
      put_rest(owner, unpack_grant(packed))
    end
  end
  return #dead
end
