-- The queue of a fair lock: a list in order of arrival, and deadlines in a sorted set.
-- KEYS[2] is the list, KEYS[3] the set.

-- Drops heads that are past their deadline, or have none. Returns whether there were any.
local function drop()
  local dropped = false
  while true do
    local head = redis.call('LINDEX', KEYS[2], 0)
    local deadline = head and redis.call('ZSCORE', KEYS[3], head)
    if not head or deadline and tonumber(deadline) > now then
      return dropped
    end
    redis.call('LPOP', KEYS[2])
    redis.call('ZREM', KEYS[3], head)
    dropped = true
  end
end

-- Moves the deadlines of waiters earlier by wait ms, because a waiter in front of them has gone. No deadline comes
-- nearer than wait ms from now: a waiter that lives would be dropped as dead.
local function lower(behind, wait)
  for _, waiter in ipairs(behind) do
    local deadline = tonumber(redis.call('ZSCORE', KEYS[3], waiter) or 0)
    local sooner = math.max(deadline - wait, now + wait)
    if sooner < deadline then
      redis.call('ZADD', KEYS[3], string.format('%.0f', sooner), waiter)
    end
  end
end

-- Takes an owner out of the queue. The deadlines of those behind it come earlier.
local function leave(owner, wait)
  local all = redis.call('LRANGE', KEYS[2], 0, -1)
  local behind, found = {}, false
  for _, waiter in ipairs(all) do
    if found then
      behind[#behind + 1] = waiter
    elseif waiter == owner then
      found = true
    end
  end
  redis.call('ZREM', KEYS[3], owner)
  redis.call('LREM', KEYS[2], 1, owner)
  lower(behind, wait)
end

-- Tells the head on its own channel that it may try.
local function wake(publish, channel)
  local head = redis.call('LINDEX', KEYS[2], 0)
  if head then
    redis.call(publish, channel .. ':' .. head, '0')
  end
end
