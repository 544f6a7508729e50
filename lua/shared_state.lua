-- The state of one lock, read once and judged by one clock.
--
-- Hash fields: kind, token (largest issued), queued (live queue length),
-- holder ('deadline client nonce owner' of the exclusive grant), ended (nonces
-- that must not be granted any more, each with its not-after), o:OWNER (the
-- owner's grant), w:NONCE (a waiter), v:OWNER (nonces a named owner has queued),
-- r:NONCE (the owner of a reading session).
-- Users' strings stand behind a prefix or at the end of a record, never elsewhere.
--
-- TIME moves while a script runs and key expiry does not, so it is read here,
-- once, and no decision looks at a key's TTL.

local clock = redis.call('TIME')
local micros = clock[1] * 1000000 + clock[2]
local now = math.floor(micros / 1000)

local state = {}

-- Lua prints 1.8e15 by itself: every number that leaves as text comes through here.
local function text(number)
  return string.format('%.0f', number)
end

-- Returns the error reply when KEYS[1] is not ours to touch, else nothing: what a
-- script has written is not taken back when a later command fails.
local function open(owner, nonce)
  local fields = redis.pcall('HMGET', KEYS[1], 'kind', 'token', 'queued', 'holder', 'ended', 'o:' .. owner, 'w:' .. nonce)
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
  state.fresh = redis.call('PEXPIRE', KEYS[1], text(ttl + keep), 'GT') == 0 and state.kind == false
end

-- Gives a hash that did not exist before this script its first TTL: right after
-- the first write, since what follows may be refused.
local function cover(ttl, keep)
  if state.fresh then
    redis.call('PEXPIRE', KEYS[1], text(ttl + keep))
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
  local parts = { grant.mode, text(grant.low), text(grant.high) }
  for _, s in ipairs(grant.sessions) do
    parts[#parts + 1] = table.concat({ s.client, s.nonce, text(s.op), text(s.writes), text(s.reads), text(s.deadline) }, ' ')
  end
  return table.concat(parts, ' ')
end

-- Writes the exclusive grant back, with any further fields the caller hands in.
local function store_grant(owner, grant, ...)
  local longest = grant.sessions[1]
  for _, s in ipairs(grant.sessions) do
    if s.deadline > longest.deadline then
      longest = s
    end
  end
  state.deadline, state.client, state.nonce, state.owner = longest.deadline, longest.client, longest.nonce, owner
  redis.call('HSET', KEYS[1], 'o:' .. owner, pack_grant(grant),
    'holder', table.concat({ text(longest.deadline), longest.client, longest.nonce, owner }, ' '), ...)
end

local function drop_grant()
  redis.call('HDEL', KEYS[1], 'o:' .. state.owner, 'holder')
  state.owner = nil
end

-- Tokens come from the past, so that the counter never runs ahead of the clock
-- and a counter that was lost starts above everything it had issued.
local function issue(size)
  local high = micros
  local low = math.max(state.token, high - size) + 1
  if low > high then
    low = state.token + 1
    high = low
  end
  state.token = high
  return low, high
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
  state.ended = kept .. (kept == '' and '' or ' ') .. nonce .. ' ' .. text(until_ms)
  redis.call('HSET', KEYS[1], 'ended', state.ended)
end
