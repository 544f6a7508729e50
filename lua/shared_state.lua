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
  state.ended = fields[5] or ''
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

-- A nonce in 'ended' belongs to a request that its client has ended while a
-- copy of it was unanswered: whenever that copy arrives, it grants nothing.
local function has_ended(nonce)
  return state.ended ~= '' and string.find(state.ended, nonce, 1, true) ~= nil
end

-- They come in nearly the order of their deadlines. Only the front is dropped,
-- so that a crowd of abandoned requests does not cost its square.
local function keep_ended(nonce, until_ms)
  local from = 1
  while true do
    local _, last, deadline = string.find(state.ended, '^%S+ (%d+) ?', from)
    if not last or tonumber(deadline) > now then
      break
    end
    from = last + 1
  end
  local kept = string.sub(state.ended, from)
  state.ended = kept .. (kept == '' and '' or ' ') .. nonce .. ' ' .. until_ms
  redis.call('HSET', KEYS[1], 'ended', state.ended)
end
