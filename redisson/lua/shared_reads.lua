-- A reader has a key for each of its holds, and the hash lives for as long as any of them.

-- Sets as many of the reader's own keys as it has holds, each to live for the lease at least:
-- so the first lives the longest, and the one that goes with a hold is needed by no other.
local function keep(from, holds, lease)
  for i = from, math.min(#KEYS, from + holds - 1) do
    if redis.call('PTTL', KEYS[i]) < lease then
      redis.call('SET', KEYS[i], '1', 'PX', string.format('%.0f', lease))
    end
  end
end

-- How long any reader in the hash will live, as Redisson finds it; 0: none does.
local function longest(tag)
  local most = 0
  local fields = redis.call('HGETALL', KEYS[1])
  for i = 1, #fields, 2 do
    local holds = fields[i] ~= 'mode' and tonumber(fields[i + 1]) or 0
    for k = holds, 1, -1 do
      most = math.max(most, redis.call('PTTL', tag .. ':' .. fields[i] .. ':rwlock_timeout:' .. k))
    end
  end
  return most
end

-- Has the hash live for as long as its readers, or ends it; says whether it goes on.
local function settle(tag)
  local most = longest(tag)
  if most > 0 then
    redis.call('PEXPIRE', KEYS[1], string.format('%.0f', most))
    return true
  end
  redis.call('DEL', KEYS[1])
  return false
end
