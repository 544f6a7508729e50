-- The time at which a script runs. Each script reads TIME once, into the local variable clock, and judges all deadlines
-- by it, because TIME can move on while a script runs. No decision depends on a key's TTL.
local micros = clock[1] * 1000000 + clock[2]
local now = (micros - micros % 1000) / 1000

-- Returns a whole number as text. Lua itself writes a number of more than 14 digits as 1.8e15, and times in
-- microseconds have more. %d is not used: on a 32-bit server it keeps only 32 bits.
local function text(number)
  return string.format('%.0f', number)
end

-- Returns the first and the last token of a new grant. last is the token counter, 0 if it was lost; size is how many
-- tokens are wanted. The first token is larger than last, and the block ends at the present time. It has one token if
-- the counter is ahead of the clock, or was lost (then a token may have been issued just now).
local function issue(last, size)
  local high = micros
  size = last > 0 and size or 1
  local low = math.max(last, high - size) + 1
  return low, math.max(low, high)
end
