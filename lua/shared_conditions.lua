-- Waiters on conditions, and how a signal always reaches one of them. A waiter has a record and a lease as in the
-- queue, but no place. The waiters of a condition form a linked list, its chain: no step takes longer among many.

-- Returns what link_parts reads in the i: field of a waiter, or nothing if there is no such field.
local function stored_link(nonce)
  return link_parts(redis.call('HGET', KEYS[1], 'i:' .. nonce) or '')
end

-- Makes two waiters neighbours in a condition's chain. '-' stands for nobody: then the other is an end of the chain.
local function join_links(before, after, condition)
  if before ~= '-' then
    local _, further = stored_link(before)
    link(before, 0, further or '-', after, condition)
  end
  if after ~= '-' then
    local _, _, further = stored_link(after)
    link(after, 0, before, further or '-', condition)
  end
  if before ~= '-' and after ~= '-' then
    return
  end
  local ends = redis.call('HGET', KEYS[1], 'c:' .. condition) or '- -'
  local first = before == '-' and after or string.match(ends, '^%S+')
  local last = after == '-' and before or string.match(ends, '%S+$')
  if first == '-' or last == '-' then
    redis.call('HDEL', KEYS[1], 'c:' .. condition)
  else
    redis.call('HSET', KEYS[1], 'c:' .. condition, first .. ' ' .. last)
  end
end

-- Puts a waiter at the end of a condition's chain.
local function add_awaiting(waiter, condition)
  waiter.place, waiter.told = 0, now
  add_to_queue(waiter.deadline, text(-(waiter.deadline + apart)), 'c' .. waiter.nonce)
  local ends = redis.call('HGET', KEYS[1], 'c:' .. condition)
  local last = ends and string.match(ends, '%S+$') or '-'
  redis.call('HSET', KEYS[1], 'w:' .. waiter.nonce, waiter_text(waiter), 'c:' .. condition,
    (ends and string.match(ends, '^%S+') or waiter.nonce) .. ' ' .. waiter.nonce)
  link(waiter.nonce, 0, last, '-', condition)
  if ends then
    local _, before = stored_link(last)
    link(last, 0, before or '-', waiter.nonce, condition)
  end
  state.conds = state.conds or { count = 0, signaller = '-', number = 0, owed = '' }
  state.conds.count = state.conds.count + 1
  save_conds()
end

-- Handles the heartbeat of a waiter on a condition, and extends its lease. Otherwise it would be queued like a
-- signalled waiter. Returns false if the request waits on no condition.
local function keep_awaiting(request)
  local before = request.waiter and read_waiter(request.waiter)
  if not before or before.place ~= 0 then -- with a place it is in the queue of the lock
    return false
  end
  before.op = math.max(before.op, request.op)
  before.counts = write_counts(before.op, before.writes, before.reads, before.ttl, before.block)
  before.deadline = math.max(before.deadline, now + request.ttl)
  add_to_queue(before.deadline, text(-(before.deadline + apart)), 'c' .. request.nonce)
  redis.call('HSET', KEYS[1], 'w:' .. request.nonce, waiter_text(before))
  return true
end

-- Returns whether there is any live waiter, in the queue or on a condition.
local function waited_for()
  return redis.call('ZCOUNT', KEYS[2], '(' .. text(-apart), '(' .. text(-now))
    + redis.call('ZCOUNT', KEYS[2], '(' .. text(-far), '(' .. text(-(now + apart))) > 0
end

-- Takes a waiter off its condition, so that no signal reaches it any more.
local function leave_condition(nonce)
  local place, before, after, condition = stored_link(nonce)
  if place == '0' then
    join_links(before, after, condition)
  end
  redis.call('ZREM', KEYS[2], 'c' .. nonce)
  forget_condition(nonce)
end

-- Puts a waiter that has left its condition into the queue, at the given place, or at the end if that is 0. If an
-- ancestor of its owner holds, settle may let it in at once.
local function enter_queue(waiter, place)
  waiter.place, waiter.told = place, 0
  insert_waiter(waiter, true)
  local names = waiter.named and lineage(waiter.owner) or {}
  for i = 2, #names do
    state.stirred[names[i]] = true -- this ancestor may hold: then the waiter can enter
  end
end

-- Removes a waiter that has gone, from the queue or from its condition. If it was signalled, it owes the signal.
local function drop_gone(nonce, waiter)
  if waiter.place == 0 then
    leave_condition(nonce)
    redis.call('HDEL', KEYS[1], 'w:' .. nonce)
  else
    drop_waiter(nonce, waiter)
    owe(nonce)
  end
end

-- Moves the longest waiting live waiter of a condition to the queue, with the given place. Returns whether there was
-- one, or nil if the budget ended before that was known.
local function signal(condition, place)
  local ends = redis.call('HGET', KEYS[1], 'c:' .. condition)
  local nonce = ends and string.match(ends, '^%S+') or '-'
  while nonce ~= '-' do
    if budget <= 0 then
      return nil
    end
    budget = budget - 1
    local waiter = stored_waiter(nonce)
    local _, _, after = stored_link(nonce)
    join_links('-', after or '-', condition)
    redis.call('ZREM', KEYS[2], 'c' .. nonce)
    if waiter and waiter.deadline > now then
      enter_queue(waiter, place)
      link(nonce, waiter.place, '-', '-', condition)
      return true
    end
    redis.call('HDEL', KEYS[1], 'w:' .. nonce)
    forget_condition(nonce)
    nonce = after or '-'
  end
  return false
end

-- Gives each signal whose receiver has gone to the next waiter of that condition, with the same place.
local function pass_signals()
  while state.conds and state.conds.owed ~= '' and budget > 0 do
    local nonce = string.match(state.conds.owed, '^%S+')
    local place, _, _, condition = link_parts(redis.call('HGET', KEYS[1], 'i:' .. nonce) or '0 - - ')
    if signal(condition, tonumber(place)) == nil then
      return
    end
    clear_owed(nonce)
    save_conds()
    forget_condition(nonce)
  end
end

-- Removes dead waiters after the queue's key has expired. That key lives for TokenKeep after the last of their
-- leases, but the hash lives as long as its holder renews. Only a scan of the hash finds their fields then.
local function sweep_expired()
  local cursor = '0'
  repeat
    local page = redis.call('HSCAN', KEYS[1], cursor, 'MATCH', 'w:*', 'COUNT', 100)
    cursor, budget = page[1], budget - 1
    if budget <= 0 then
      return
    end
    for i = 1, #page[2], 2 do
      if budget <= 0 then
        return
      end
      local waiter = read_waiter(page[2][i + 1])
      if waiter.deadline <= now then
        budget = budget - 1
        drop_gone(string.sub(page[2][i], 3), waiter)
      end
    end
  until cursor == '0'
  state.queued = 0
end

-- Removes dead waiters of all conditions, as many as the budget allows.
local function sweep_conditions()
  if not state.conds then
    return
  end
  -- conds also counts the session that holds alone, if it was signalled. That session is no member of the queue's key.
  local signalled = state.alone and redis.call('HGET', KEYS[1], 'i:' .. state.alone.nonce) and 1 or 0
  if state.conds.count > signalled and #redis.call('ZRANGE', KEYS[2], 0, 0) == 0 then
    return sweep_expired()
  end
  local dead = redis.call('ZRANGEBYSCORE', KEYS[2], text(-(now + apart)), '(' .. text(-apart), 'LIMIT', 0, math.max(budget, 1))
  for _, member in ipairs(dead) do
    budget = budget - 1
    local nonce = string.sub(member, 2)
    leave_condition(nonce)
    redis.call('HDEL', KEYS[1], 'w:' .. nonce)
  end
end
