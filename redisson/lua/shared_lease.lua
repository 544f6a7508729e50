-- Makes a key live for lease ms from now, and returns how long it lives. A longer life stays: another hold may need it.
local function extend(key, lease)
  local left = redis.call('PTTL', key)
  if left < lease then
    redis.call('PEXPIRE', key, string.format('%.0f', lease))
    return lease
  end
  return left
end
