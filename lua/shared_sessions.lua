-- Who holds. One session alone is the usual case. Several stand in the queue's ZSET:
-- 'r' and the nonce, scored by minus (deadline + far), so that they come before all
-- that waits, the longest lease first. Every step on one of them costs the same among
-- ten and among ten thousand, whoever's they are.

local far = 100000000000000

-- The member of the session with the longest lease, and its deadline, if that runs.
local function longest()
  local first = state.several and redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES') or {}
  local deadline = first[2] and -tonumber(first[2]) - far or 0
  if deadline > now then
    return first[1], deadline
  end
end

-- The owner that excludes all others, or nil.
local function writer()
  local alone = state.alone
  return alone and alone.writes > 0 and alone.owner or state.exclusive
end

-- The instant until which a writer cannot have the lock, or nil.
local function blocked()
  local alone = state.alone
  if alone and alone.deadline > now then
    return alone.deadline
  end
  local _, deadline = longest()
  return deadline
end

local function stored_grant(owner)
  local packed = state.several and redis.call('HGET', KEYS[1], 'g:' .. owner)
  return packed and read_grant(packed)
end

-- The grant of one of several owners, while any of its sessions is within its lease: who
-- joined it after that would have its tokens once more, which may be old by then. Its
-- deadline may be that of a session which has left: since says what is over all the same.
local function shared_grant(owner)
  local grant = stored_grant(owner)
  return grant and grant.deadline > now and grant.low >= state.since and grant or nil
end

-- What the owner holds, in whatever session: its tokens and its mode. An anonymous
-- session is nobody's to enter: its process passes it on as if nobody had.
local function grant_of(owner)
  local alone = state.alone
  if alone then
    return alone.owner == owner and alone.named and alone.deadline > now and alone or nil
  end
  local grant = shared_grant(owner)
  if grant then
    grant.mode = state.exclusive == owner and 'w' or 'r'
  end
  return grant
end

-- The session of that nonce, also where its lease has ended; one of several, only
-- while its owner's grant is the one that it was part of.
local function find(nonce, client, owner)
  local s = state.alone
  if not s and state.several then
    local packed = redis.call('HGET', KEYS[1], 's:' .. nonce)
    s = packed and read_session(packed)
    s = s and s.client == client and s
    local grant = s and shared_grant(s.owner)
    if not grant or grant.low ~= s.low then
      return nil
    end
    s.high = grant.high
  end
  return s and s.nonce == nonce and s.client == client and (owner == '' or s.owner == owner) and s or nil
end

-- Adds members, all of one deadline, to the queue's key, which lives as long as
-- the hash does. GT: its TTL never moves earlier. ZADD comes first: it is refused
-- where the key is not ours, whose TTL is not ours to move then. That TTLs may be
-- set at all has been found out by touch.
local function add_to_queue(deadline, ...)
  local lease = deadline - now + state.keep
  local added = redis.call('ZADD', KEYS[2], ...)
  if redis.call('PEXPIRE', KEYS[2], lease, 'GT') == 0 then
    redis.call('PEXPIRE', KEYS[2], lease, 'NX')
  end
  return added
end

-- Several hold from now on, of whom the owner excludes all others; nil: nobody does.
local function exclude(owner)
  state.exclusive, state.several = owner, write_several(state.since, owner)
  redis.call('HSET', KEYS[1], 'several', state.several)
end

-- An owner that has no writing session any more excludes nobody.
local function settle_mode(owner, grant)
  if state.exclusive == owner and grant.writing == 0 then
    exclude(nil)
  end
end

-- When the last of several has gone, the lock is free, or one may hold alone.
local function settle_several()
  local first = state.several and redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES') or {}
  if state.several and (not first[2] or tonumber(first[2]) >= -far) then
    state.several, state.exclusive, state.since = nil, nil, 0
    redis.call('HDEL', KEYS[1], 'several')
  end
end

-- Writes one of several sessions, and its owner's grant where that changes.
local function save(s, grant, begins)
  add_to_queue(s.deadline, text(-(s.deadline + far)), 'r' .. s.nonce)
  if begins then
    grant.sessions = grant.sessions + 1
  end
  grant.deadline = math.max(grant.deadline, s.deadline)
  redis.call('HSET', KEYS[1], 's:' .. s.nonce, write_session(s), 'g:' .. s.owner, write_grant(grant))
  settle_mode(s.owner, grant)
end

-- Stores a session that states other counts or a later deadline.
local function change(s, op, writes, reads, deadline)
  local wrote = s.writes > 0
  s.op, s.writes, s.reads, s.deadline = op, writes, reads, math.max(s.deadline, deadline)
  s.mode = writes > 0 and 'w' or 'r'
  if s == state.alone then
    redis.call('HSET', KEYS[1], 'o:' .. s.owner, write_counts(op, writes, reads, s.ttl, s.block), 'until', s.deadline)
    return
  end
  local grant = shared_grant(s.owner)
  grant.writing = grant.writing + (writes > 0 and 1 or 0) - (wrote and 1 or 0)
  save(s, grant)
end

-- The session that held alone becomes one of several.
local function spread()
  local s = state.alone
  save(s, { low = s.low, high = s.high, sessions = 0, writing = s.writes > 0 and 1 or 0, deadline = 0 }, true)
  exclude(s.writes > 0 and s.owner or nil)
  redis.call('HDEL', KEYS[1], 'holder', 'until', 'o:' .. s.owner)
  state.alone = nil
end

-- Stores a session that begins, with the tokens that it has been given.
local function put(s)
  if not state.alone and not state.several then
    s.block = s.high - s.low + 1
    state.alone = s
    redis.call('HSET', KEYS[1], 'holder', s.identity, 'until', s.deadline, 'o:' .. s.owner,
      write_counts(s.op, s.writes, s.reads, s.ttl, s.block), 'token', text(state.token), 'kind', state.kind)
    return
  end
  if state.alone then
    spread()
  elseif not longest() then
    -- All that is left of the others is to be forgotten: nobody joins them any more.
    state.since = math.max(state.since, s.low)
    exclude(nil)
  end
  local grant = shared_grant(s.owner) or { low = s.low, high = s.high, sessions = 0, writing = 0, deadline = 0 }
  if s.writes > 0 then
    grant.writing = grant.writing + 1
    exclude(s.owner)
  end
  save(s, grant, true)
  redis.call('HSET', KEYS[1], 'token', text(state.token), 'kind', state.kind)
end

local function drop(s)
  if s == state.alone then
    redis.call('HDEL', KEYS[1], 'holder', 'until', 'o:' .. s.owner)
    state.alone = nil
    return
  end
  redis.call('ZREM', KEYS[2], 'r' .. s.nonce)
  redis.call('HDEL', KEYS[1], 's:' .. s.nonce)
  local grant = stored_grant(s.owner)
  if not grant or grant.low ~= s.low then
    return
  end
  grant.sessions, grant.writing = grant.sessions - 1, grant.writing - (s.writes > 0 and 1 or 0)
  if grant.sessions <= 0 then
    grant.writing = 0
    redis.call('HDEL', KEYS[1], 'g:' .. s.owner)
  else
    redis.call('HSET', KEYS[1], 'g:' .. s.owner, write_grant(grant))
  end
  settle_mode(s.owner, grant)
end

-- Forgets those of several that are past their deadline, as many as the budget allows.
local function sweep_sessions()
  if not state.several or not KEYS[2] then
    return
  end
  local dead = redis.call('ZRANGEBYSCORE', KEYS[2], text(-(now + far)), '(' .. text(-far), 'LIMIT', 0, math.max(budget, 1))
  budget = budget - #dead
  for _, member in ipairs(dead) do
    local nonce = string.sub(member, 2)
    local packed = redis.call('HGET', KEYS[1], 's:' .. nonce)
    if packed then
      drop(read_session(packed))
    else
      redis.call('ZREM', KEYS[2], member)
    end
  end
  if state.exclusive and not longest() then
    -- Its last session is past its deadline: the grant ends, whatever is left to forget.
    redis.call('HDEL', KEYS[1], 'g:' .. state.exclusive)
    exclude(nil)
  end
  settle_several()
end
