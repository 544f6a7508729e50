-- The state taken apart, the records of grants, and the key's time to live.

local state = {}

-- What one script may do besides what it is asked for. A step takes the server about
-- 12 us: nobody else waits for more than some ms.
local budget = 250

-- A step on a long text costs more.
local function charge(long)
  budget = budget - math.floor(#long / 5000)
end

-- Returns the error reply when KEYS[1] is not ours to touch, else nothing.
local function open()
  if fields.err then
    return fields
  end
  state.kind = fields[1]
  state.shared = fields[1] == 'rw' or fields[1] == 'fair rw'
  state.token = tonumber(fields[2] or 0)
  state.queued = tonumber(fields[3] or 0)
  state.stored = state.queued
  state.ended = fields[5]
  state.grant = fields[6]
  state.waiter = fields[7]
  state.due = tonumber(string.match(fields[8] or '0', '%d+$'))
  state.looks = fields[9] or ''
  if fields[4] then
    local deadline, client, rest, holder = string.match(fields[4], '^(%d+) (%S+) (%S+) (.*)$')
    state.deadline = tonumber(deadline)
    state.client, state.nonce, state.owner = client, rest, holder
  end
end

local function held()
  return state.owner ~= nil and state.deadline > now
end

-- PEXPIRE is the first write of every script: Redis allows it when it is out of
-- memory, and then lets the script's other writes pass; and a client that may
-- not set a TTL fails here, before anything without one exists. GT: a key's TTL
-- is garbage collection for the longest deadline and never moves earlier.
local function touch(ttl, keep)
  state.keep = keep
  state.fresh = redis.call('PEXPIRE', KEYS[1], ttl + keep, 'GT') == 0 and state.kind == false and not fields[8]
end

-- Gives a hash that did not exist before this script its first TTL: right after
-- the first write, since what follows may be refused.
local function cover(ttl, keep)
  if state.fresh then
    redis.call('PEXPIRE', KEYS[1], ttl + keep)
    state.fresh = false
  end
end

-- An owner's grant is 'mode low high' and, for each client's session,
-- ' client nonce op writes reads deadline', the longest lease first. Thousands of
-- processes may share a name: their sessions stay text, in which one is found, cut
-- out and put in, so that a step does not take all of them apart.
local function deadline_at(sessions, from)
  return string.match(sessions, '^ %S+ %S+ %d+ %d+ %d+ (%d+)()', from)
end

-- Sessions past their deadline, which stand last, are dropped on reading: a dead
-- process' holds end though another's go on.
local function living(sessions)
  local longest = deadline_at(sessions)
  if not longest or tonumber(longest) <= now then
    return ''
  end
  local last = #sessions
  while true do
    local tail = string.sub(sessions, math.max(last - 255, 1), last)
    local start, deadline = string.match(tail, '() %S+ %S+ %d+ %d+ %d+ (%d+)$')
    if tonumber(deadline) > now then
      return string.sub(sessions, 1, last)
    end
    last = last - #tail + start - 1
  end
end

local function unpack_grant(packed)
  local mode, low, high, from = string.match(packed, '^(%S+) (%d+) (%d+)()')
  return { mode = mode, low = tonumber(low), high = tonumber(high), sessions = living(string.sub(packed, from)) }
end

local function each_session(grant)
  return string.gmatch(grant.sessions, ' (%S+) (%S+) (%d+) (%d+) (%d+) (%d+)')
end

local function find_session(grant, client, nonce)
  local before = ' ' .. client .. ' '
  local from, to = string.find(grant.sessions, nonce, 1, true)
  while from do
    local start = from - #before
    local op, writes, reads, deadline, stop = string.match(grant.sessions, '^ (%d+) (%d+) (%d+) (%d+)()', to + 1)
    if op and string.sub(grant.sessions, start, from - 1) == before then
      return {
        client = client, nonce = nonce, op = tonumber(op), writes = tonumber(writes), reads = tonumber(reads),
        deadline = tonumber(deadline), from = start, stop = stop,
      }
    end
    from, to = string.find(grant.sessions, nonce, to + 1, true)
  end
end

local function cut_session(grant, s)
  grant.sessions = string.sub(grant.sessions, 1, s.from - 1) .. string.sub(grant.sessions, s.stop)
  s.from = nil
end

-- Puts a session in, or one that has been found and changed back in.
local function put_session(grant, s)
  if s.from then
    cut_session(grant, s)
  end
  local at = 1
  local deadline, after = deadline_at(grant.sessions, at)
  while deadline and tonumber(deadline) > s.deadline do
    at = after
    deadline, after = deadline_at(grant.sessions, at)
  end
  local packed = ' ' .. s.client .. ' ' .. s.nonce .. ' ' .. s.op .. ' ' .. s.writes .. ' ' .. s.reads .. ' ' .. s.deadline
  grant.sessions = string.sub(grant.sessions, 1, at - 1) .. packed .. string.sub(grant.sessions, at)
  charge(grant.sessions)
end

local function pack_grant(grant)
  return grant.mode .. ' ' .. text(grant.low) .. ' ' .. text(grant.high) .. grant.sessions
end

-- Writes the exclusive grant back, with any further fields the caller hands in,
-- and the queue's length, which it has at hand.
local function store_grant(owner, grant, ...)
  local client, nonce, deadline = string.match(grant.sessions, '^ (%S+) (%S+) %d+ %d+ %d+ (%d+)')
  state.deadline, state.client, state.nonce, state.owner = tonumber(deadline), client, nonce, owner
  state.stored = state.queued
  redis.call('HSET', KEYS[1], 'o:' .. owner, pack_grant(grant), 'queued', state.queued,
    'holder', deadline .. ' ' .. client .. ' ' .. nonce .. ' ' .. owner, ...)
end

local function drop_grant()
  redis.call('HDEL', KEYS[1], 'o:' .. state.owner, 'holder')
  state.owner = nil
end

-- An ended nonce is that of a request that its client has given up while a copy of
-- it was unanswered: whenever that copy arrives, it grants nothing. They are
-- forgotten when no copy counts any more, in the order in which they came, which
-- is nearly that of their times. Returns the list's first and next number.
local function forget_ended()
  local first, last = string.match(redis.call('HGET', KEYS[1], 'ended') or '0 0 0', '^(%d+) (%d+)')
  first, last = tonumber(first), tonumber(last)
  local before, due = first, nil
  for number = first, math.min(last, first + 100) - 1 do
    local nonce = redis.call('HGET', KEYS[1], 'n:' .. number) or ''
    due = tonumber(redis.call('HGET', KEYS[1], 'e:' .. nonce) or 0)
    if due > now then
      break
    end
    redis.call('HDEL', KEYS[1], 'n:' .. number, 'e:' .. nonce)
    first = number + 1
  end
  if first > before and first == last then
    redis.call('HDEL', KEYS[1], 'ended')
  elseif first > before then
    redis.call('HSET', KEYS[1], 'ended', first .. ' ' .. last .. ' ' .. text(due))
  end
  state.due = 0
  return first, last, due
end

-- No copy of a request counts for longer than a minute, whatever its client takes
-- the time to be: else one nonce would keep those behind it, and the hash, for ever.
local function keep_ended(nonce, until_ms)
  local first, last, due = forget_ended()
  if redis.call('HSET', KEYS[1], 'e:' .. nonce, until_ms) == 1 then
    redis.call('HSET', KEYS[1], 'n:' .. last, nonce)
    last = last + 1
  end
  redis.call('HSET', KEYS[1], 'ended', first .. ' ' .. last .. ' ' .. text(due or until_ms))
end
