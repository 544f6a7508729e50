-- The state of one lock, read once and judged by one reading of the clock; and the expiry of its hash.

-- How many steps a script may do on behalf of clients other than its caller. A step takes the server about 12 us, so
-- all steps block the server for a few ms.
local budget = 250

-- Charges the budget for work on a long text.
local function charge(long)
  budget = budget - math.floor(#long / 5000)
end

-- Ends the script with an error reply if KEYS[1] is not a hash, or that of a lock in use in another layout. This comes
-- before the first write: Redis does not undo what a script wrote before a command that fails.
if fields.err then
  return fields
end
if fields[4] and (fields[1] or fields[2]) and string.sub(fields[4], -#layout) ~= layout then
  return { err = 'LAYOUT ' .. fields[4] }
end
local state = {
  crowd = fields[2], token = tonumber(fields[3] or 0), kind = fields[4], queued = tonumber(string.match(fields[2] or '0', '^%d+')),
  looks = '', due = 0, since = 0, used = 0, rests = 0, stirred = {}, ousts = false,
}
if fields[2] and string.find(fields[2], '+', 1, true) then
  local rest = redis.call('HMGET', KEYS[1], 'several', 'ended', 'looks', 'rests', 'conds', 'nests', 'branches')
  state.several, state.ended, state.looks = rest[1], rest[2], rest[3] or ''
  state.rests, state.rester, state.rest_op = read_rests(rest[4])
  state.conds = rest[5] and read_conds(rest[5])
  state.nests, state.branches, state.ousts = rest[6], rest[7], rest[6] == '2'
  for owner in string.gmatch(rest[7] or '', '\255([^\255]+)') do
    state.stirred[owner] = true
  end
  if rest[1] then
    state.since, state.exclusive, state.used = read_several(rest[1])
  end
  state.due = tonumber(string.match(rest[2] or '0', '%d+$'))
end
if fields[1] then
  local own = redis.call('HMGET', KEYS[1], 'o:' .. read_identity(fields[1]).owner, 'until')
  local alone = read_request(own[1] or '0 0 0 0 1', fields[1])
  alone.high, alone.low = state.token, state.token - alone.block + 1
  alone.deadline = deadline_alone(own[2], state.token, alone.ttl)
  state.alone = alone
end

-- Returns for how many ms the hash must live for a lease: the lease, TokenKeep, and the time by which the token
-- counter is ahead of the clock. A counter that was raised to the token of a faster server must not expire before this
-- clock has passed it. Otherwise the next grant would have a smaller token.
local function life(lease, keep)
  return lease + keep + math.max(math.floor(state.token / 1000) - now, 0)
end

-- Notes keep, and sets the expiry of the hash. GT: it only collects garbage, so it never moves earlier. This is a
-- script's first write. Redis allows PEXPIRE when it is out of memory, and then the other writes, too. And a user that
-- may not set an expiry fails here, before a key without one exists. Returns true if there is no hash: 0 alone can mean
-- a later expiry. Then the caller sets the expiry right after its first write, as a later write may be refused.
local function touch(ttl, keep)
  state.keep = keep
  return redis.call('PEXPIRE', KEYS[1], life(ttl, keep), 'GT') == 0 and not (state.kind or state.crowd)
end

-- Forgets some ended nonces, once no copy of their requests can arrive any more: until then a copy must be refused. It
-- goes in the order in which they ended, which is almost the order of those times. Returns the first number in the
-- list, the next free number, and when to call this again (nil if the list was empty).
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

-- Notes that a nonce has ended, so that copies of its requests are refused until until_ms. Callers limit until_ms to a
-- minute from now, whatever the client says. Otherwise one nonce could keep those behind it, and the hash, for ever.
local function keep_ended(nonce, until_ms)
  local first, last, due = forget_ended()
  if redis.call('HSET', KEYS[1], 'e:' .. nonce, until_ms) == 1 then
    redis.call('HSET', KEYS[1], 'n:' .. last, nonce)
    last = last + 1
  end
  state.ended = first .. ' ' .. last .. ' ' .. text(due or until_ms)
  redis.call('HSET', KEYS[1], 'ended', state.ended)
end
