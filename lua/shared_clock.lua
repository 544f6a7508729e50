-- The instant at which a script runs. The script has read it once, as the local clock:
-- TIME moves meanwhile and key expiry does not. No decision looks at a key's TTL.
local micros = clock[1] * 1000000 + clock[2]
local now = (micros - micros % 1000) / 1000

-- Lua prints 1.8e15 by itself: numbers of more than 14 digits, which are those in
-- microseconds, leave as text through here. Not by %d, which is of 32 bits on such a server.
local function text(number)
  return string.format('%.0f', number)
end

-- Tokens come from the past, so that the counter never runs ahead of the clock
-- and a counter that was lost starts above everything it had issued: with a block
-- of one, since what it had issued may be some microseconds old.
local function issue(last, size)
  local high = micros
  size = last > 0 and size or 1
  local low = math.max(last, high - size) + 1
  if low > high then
    low = last + 1
    high = low
  end
  return low, high
end
