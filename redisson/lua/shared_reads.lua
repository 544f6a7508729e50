-- A reader has a key for each of its holds, and the hash lives for as long as any of them.

-- Makes a reader's own keys, one for each hold and from KEYS[from] on, live for the lease at least. So the first lives
-- the longest, and the last can go with a hold.
local function keep(from, holds, lease)
  for i = from, math.min(#KEYS, from + holds - 1) do
    if redis.call('PTTL', KEYS[i]) < lease then
      redis.call('SET', KEYS[i], '1', 'PX', string.format('%.0f', lease))
    end
  end
end

-- Returns the longest life in ms of a key of any reader in the hash, looked up as Redisson does; 0: there is none. The
-- keys begin with tag.
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

-- Makes the hash live for as long as its readers, or deletes it if there are none. Returns whether it goes on.
local function settle(tag)
  local most = longest(tag)
  if most > 0 then
    redis.call('PEXPIRE', KEYS[1], string.format('%.0f', most))
    return true
  end
  redis.call('DEL', KEYS[1])
  return false
end
