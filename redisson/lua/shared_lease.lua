-- A lease that only grows: who asks for less leaves what others need.
local function extend(key, lease)
  local left = redis.call('PTTL', key)
  if left < lease then
    redis.call('PEXPIRE', key, string.format('%.0f', lease))
    return lease
  end
  return left
end
