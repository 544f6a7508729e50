-- The state taken apart, the records of grants, and the key's time to live.

local state = {}

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
  state.fresh = redis.call('PEXPIRE', KEYS[1], ttl + keep, 'GT') == 0 and state.kind == false
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
-- ' client nonce op writes reads deadline'. Sessions past their deadline are
-- dropped on reading: a dead process' holds end though another's go on.
local function unpack_grant(packed)
  local grant = { sessions = {} }
  local mode, low, high, rest = string.match(packed, '^(%S+) (%d+) (%d+)(.*)$')
  grant.mode, grant.low, grant.high = mode, tonumber(low), tonumber(high)
  for client, nonce, op, writes, reads, deadline in string.gmatch(rest, ' (%S+) (%S+) (%d+) (%d+) (%d+) (%d+)') do
    if tonumber(deadline) > now then
      grant.sessions[#grant.sessions + 1] = {
        client = client, nonce = nonce, op = tonumber(op),
        writes = tonumber(writes), reads = tonumber(reads), deadline = tonumber(deadline),
      }
    end
  end
  return grant
end

local function find_session(grant, client, nonce)
  for i, session in ipairs(grant.sessions) do
    if session.client == client and session.nonce == nonce then
      return session, i
    end
  end
end

local function pack_grant(grant)
  local packed = grant.mode .. ' ' .. text(grant.low) .. ' ' .. text(grant.high)
  for _, s in ipairs(grant.sessions) do
    packed = packed .. ' ' .. s.client .. ' ' .. s.nonce .. ' ' .. s.op .. ' ' .. s.writes .. ' ' .. s.reads .. ' ' .. s.deadline
  end
  return packed
end

-- Writes the exclusive grant back, with any further fields the caller hands in,
-- and the queue's length, which it has at hand.
local function store_grant(owner, grant, ...)
  local longest = grant.sessions[1]
  for _, s in ipairs(grant.sessions) do
    if s.deadline > longest.deadline then
      longest = s
    end
  end
  state.deadline, state.client, state.nonce, state.owner = longest.deadline, longest.client, longest.nonce, owner
  state.stored = state.queued
  redis.call('HSET', KEYS[1], 'o:' .. owner, pack_grant(grant), 'queued', state.queued,
    'holder', longest.deadline .. ' ' .. longest.client .. ' ' .. longest.nonce .. ' ' .. owner, ...)
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
  local first, last = string.match(redis.call('HGET', KEYS[1], 'ended') or '0 0', '^(%d+) (%d+)$')
  first, last = tonumber(first), tonumber(last)
  local before = first
  for number = first, math.min(last, first + 100) - 1 do
    local nonce = redis.call('HGET', KEYS[1], 'n:' .. number) or ''
    if tonumber(redis.call('HGET', KEYS[1], 'e:' .. nonce) or 0) > now then
      break
    end
    redis.call('HDEL', KEYS[1], 'n:' .. number, 'e:' .. nonce)
    first = number + 1
  end
  if first > before then
    redis.call('HSET', KEYS[1], 'ended', first .. ' ' .. last)
  end
  return first, last
end

local function keep_ended(nonce, until_ms)
  local first, last = forget_ended()
  if redis.call('HSET', KEYS[1], 'e:' .. nonce, until_ms) == 1 then
    redis.call('HSET', KEYS[1], 'n:' .. last, nonce)
    last = last + 1
  end
  redis.call('HSET', KEYS[1], 'ended', first .. ' ' .. last)
end
