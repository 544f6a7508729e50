-- The server's time in ms, and whether a request comes too late to be answered (after 0: never).
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local function late(after)
  after = tonumber(after)
  return after > 0 and now > after
end
