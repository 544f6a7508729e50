-- The state of one lock, read once and judged by one clock; and the key's time to live.

local state = {}

-- What one script may do besides what it is asked for. A step takes the server about
-- 12 us: nobody else waits for more than some ms.
local budget = 250

-- A step on a long text costs more.
local function charge(long)
  budget = budget - math.floor(#long / 5000)
end

-- Returns the error reply when KEYS[1] is not ours to touch, else nothing: what a
-- script has written is not taken back when a later command fails.
local function open()
  if fields.err then
    return fields
  end
  state.crowd, state.token, state.kind = fields[2], tonumber(fields[3] or 0), fields[4]
  state.queued = tonumber(string.match(fields[2] or '0', '^%d+'))
  state.looks, state.due, state.since, state.used, state.rests = '', 0, 0, 0, 0
  state.stirred, state.ousts = {}, false
  if fields[2] and string.find(fields[2], '+', 1, true) then
    local rest = redis.call('HMGET', KEYS[1], 'several', 'ended', 'looks', 'rests', 'conds', 'nests', 'branches')
    state.several, state.ended, state.looks = rest[1], rest[2], rest[3] or ''
    state.rests, state.rester = read_rests(rest[4])
    state.conds = rest[5] and read_conds(rest[5])
    state.nests, state.branches = rest[6], rest[7]
    if rest[1] then
      state.since, state.exclusive, state.used = read_several(rest[1])
    end
    state.due = tonumber(string.match(rest[2] or '0', '%d+$'))
  end
  if fields[1] then
    local owner = read_identity(fields[1]).owner
    local own = redis.call('HMGET', KEYS[1], 'o:' .. owner, 'until')
    local alone = read_request(own[1] or '0 0 0 0 1', fields[1])
    alone.high, alone.low = state.token, state.token - alone.block + 1
    alone.deadline = deadline_alone(own[2], state.token, alone.ttl)
    state.alone = alone
  end
end

-- How long a hash lives after lease ms: keep, and as long as the counter of tokens is ahead of the
-- clock. A counter that is raised to the token of a faster clock must not expire before this
-- clock has passed it: the next grant would have a smaller token.
local function life(lease, keep)
  return lease + keep + math.max(math.floor(state.token / 1000) - now, 0)
end

-- PEXPIRE is the first write of a script: Redis allows it when it is out of
-- memory, and then lets the script's other writes pass; and a client that may
-- not set a TTL fails here, before anything without one exists. GT: a key's TTL
-- is garbage collection for the longest deadline and never moves earlier.
local function touch(ttl, keep)
  state.keep = keep
  state.fresh = redis.call('PEXPIRE', KEYS[1], life(ttl, keep), 'GT') == 0 and not (state.kind or state.crowd)
end

-- Gives a hash that did not exist before this script its first TTL: right after
-- the first write, since what follows may be refused.
local function cover(ttl, keep)
  if state.fresh then
    redis.call('PEXPIRE', KEYS[1], ttl + keep)
    state.fresh = false
  end
end

-- An ended nonce is that of a request that its client has given up while a copy of
-- it was unanswered: whenever that copy arrives, it grants nothing. They are
-- forgotten when no copy counts any more, in the order in which they came, which
-- is nearly that of their times. Returns the list's first and next number.
local function forget_ended()
  local first, last = string.match(state.ended or '0 0 0', '^(%d+) (%d+)')
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
    state.ended = nil
  elseif first > before then
    state.ended = first .. ' ' .. last .. ' ' .. text(due)
    redis.call('HSET', KEYS[1], 'ended', state.ended)
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
  state.ended = first .. ' ' .. last .. ' ' .. text(due or until_ms)
  redis.call('HSET', KEYS[1], 'ended', state.ended)
end
