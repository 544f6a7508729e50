-- Who holds. One session alone is the usual case. Several stand in the queue's ZSET:
-- 'r' and the nonce, scored by minus (deadline + far), so that they come before all
-- that waits, the longest lease first. Every step on one of them costs the same among
-- ten and among ten thousand, whoever's they are.

local far = 100000000000000

-- Who waits on a condition stands there as well: 'c' and the nonce, scored by minus
-- (deadline + apart), between those and the entries of the queue.
local apart = 50000000000000

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

-- The instant until which somebody holds, or nil.
local function leased()
  local alone = state.alone
  if alone and alone.deadline > now then
    return alone.deadline
  end
  local _, deadline = longest()
  return deadline
end

-- The instant until which a writer cannot have the lock, or nil: somebody holds, or the
-- name rests.
local function blocked()
  local deadline = leased()
  if state.rests > math.max(deadline or 0, now) then
    return state.rests
  end
  return deadline
end

-- A grant begins, after which the name is to rest: that is written down now, so that it
-- does however the grant ends, and whether or not its client lives to say so. What was
-- written is kept until the next grant, also when it is over: the clock may step back.
local function rest_after(request)
  if request.rest then
    local since = request.even and now - now % request.rest or now
    state.rests, state.rester = since + request.rest, request.nonce
    redis.call('PEXPIRE', KEYS[1], state.rests - now + state.keep, 'GT')
    redis.call('HSET', KEYS[1], 'rests', write_rests(state.rests, state.rester))
  elseif state.rester then
    state.rests = 0
  end
end

-- The instant at which the first of those who hold is past its deadline, or nil.
local function shortest()
  if state.alone then
    return leased()
  end
  local live = state.several and redis.call('ZCOUNT', KEYS[2], '-inf', '(' .. text(-(now + far))) or 0
  local last = live > 0 and redis.call('ZRANGE', KEYS[2], live - 1, live - 1, 'WITHSCORES')
  return last and -tonumber(last[2]) - far or nil
end

-- How many permits of a semaphore are taken. Those of the dead are until they have
-- been forgotten, unless there is nobody else.
local function used()
  if state.alone then
    return leased() and state.alone.weight or 0
  end
  return longest() and state.used or 0
end

local function stored_grant(owner)
  local packed = state.several and redis.call('HGET', KEYS[1], 'g:' .. owner)
  return packed and read_grant(packed)
end

-- A grant while any of its sessions is within its lease, or nil: who joined it after that
-- would have its tokens once more, which may be old by then. Its deadline may be that of
-- a session which has left: since says what is over all the same.
local function unless_over(grant)
  return grant and grant.deadline > now and grant.low >= state.since and grant or nil
end

-- The grant of one of several owners, unless that is over.
local function shared_grant(owner)
  return unless_over(stored_grant(owner))
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

local function find_live(nonce, client, owner)
  local s = find(nonce, client, owner)
  return s and s.deadline > now and s
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
  state.exclusive, state.several = owner, write_several(state.since, owner, state.used)
  redis.call('HSET', KEYS[1], 'several', state.several)
end

-- The grant of an owner begins or ends; either may be nil. The permits of one that
-- since has ended are not counted any more.
local function weigh(begins, ends)
  local more = begins and begins.weight or 0
  local less = ends and ends.low >= state.since and ends.weight or 0
  if more ~= less then
    state.used = math.max(state.used + more - less, 0)
    exclude(state.exclusive)
  end
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
    state.several, state.exclusive, state.since, state.used = nil, nil, 0, 0
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
  -- All that is older is over. Where the queue's key expired before the hash, the grants of
  -- the dead are here still: they are not to be taken for what their owners hold.
  state.since = math.max(state.since, s.low)
  local grant = { low = s.low, high = s.high, sessions = 0, writing = s.writes > 0 and 1 or 0, deadline = 0, weight = s.weight }
  save(s, grant, true)
  state.used = s.weight
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
  local over = not state.alone and not longest()
  if state.alone then
    spread()
  end
  local before = stored_grant(s.owner)
  local grant = unless_over(before)
  if not grant then
    if over then
      -- All that is left of the others is to be forgotten: nobody joins them any more.
      state.since, state.used = math.max(state.since, s.low), 0
      exclude(nil)
    end
    grant = { low = s.low, high = s.high, sessions = 0, writing = 0, deadline = 0, weight = s.weight }
    weigh(grant, before)
  end
  if s.writes > 0 then
    grant.writing = grant.writing + 1
    exclude(s.owner)
  end
  save(s, grant, true)
  redis.call('HSET', KEYS[1], 'token', text(state.token), 'kind', state.kind)
end

local function save_conds()
  local c = state.conds
  if c.count > 0 or c.signaller ~= '-' or c.owed ~= '' then
    redis.call('HSET', KEYS[1], 'conds', write_conds(c))
  else
    redis.call('HDEL', KEYS[1], 'conds')
    state.conds = nil
  end
end

-- What has gone with a signal that it was given owes it to the next who waits there:
-- who settles passes it on.
local function owe(nonce)
  if state.conds and redis.call('HGET', KEYS[1], 'i:' .. nonce) then
    state.conds.owed = state.conds.owed .. nonce .. ' '
    save_conds()
  end
end

-- A nonce owes no signal: it has been passed on, or its receiver has come back.
local function clear_owed(nonce)
  local from, to = string.find(state.conds.owed, nonce .. ' ', 1, true)
  if from then
    state.conds.owed = string.sub(state.conds.owed, 1, from - 1) .. string.sub(state.conds.owed, to + 1)
  end
end

-- A nonce has nothing to do with any condition from now on.
local function forget_condition(nonce)
  if state.conds and redis.call('HDEL', KEYS[1], 'i:' .. nonce) == 1 then
    state.conds.count = state.conds.count - 1
    clear_owed(nonce)
    save_conds()
  end
end

-- Whether settle has anything to do, while nobody excludes others.
local function unsettled()
  return state.queued > 0 or state.conds and state.conds.owed ~= ''
end

-- A session signals no more.
local function forget_signaller(nonce)
  if state.conds and state.conds.signaller == nonce then
    state.conds.signaller, state.conds.number = '-', 0
    save_conds()
  end
end

-- What a session holds is another's of the same owner from now on, and of the same grant.
local function move(s, identity, op, deadline)
  local to, grant = read_identity(identity), stored_grant(s.owner)
  forget_condition(s.nonce)
  forget_signaller(s.nonce)
  if s == state.alone then
    redis.call('HSET', KEYS[1], 'holder', identity, 'until', deadline, 'o:' .. s.owner, write_counts(op, s.writes, s.reads, s.ttl, s.block))
  else
    redis.call('ZREM', KEYS[2], 'r' .. s.nonce)
    redis.call('HDEL', KEYS[1], 's:' .. s.nonce)
  end
  s.identity, s.nonce, s.client, s.op, s.deadline = identity, to.nonce, to.client, op, deadline
  if s ~= state.alone then
    save(s, grant)
  end
end

local function drop(s)
  owe(s.nonce)
  forget_signaller(s.nonce)
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
    weigh(nil, grant)
  else
    redis.call('HSET', KEYS[1], 'g:' .. s.owner, write_grant(grant))
  end
  settle_mode(s.owner, grant)
end

-- The session of that nonce while its lease runs. One that is over is forgotten: its owner's
-- grant counts it, and is not to count twice who asks again by its nonce.
local function found_live(nonce, client, owner)
  local s = find(nonce, client, owner)
  if s and s.deadline > now then
    return s
  end
  if s and KEYS[2] then
    drop(s)
  end
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
