-- The state of one lock, read once and judged by one clock. The script names whose
-- part of it is meant: the locals owner and nonce.
--
-- Hash fields: kind, token (largest issued), queued (live queue length),
-- holder ('deadline client nonce owner' of the exclusive grant), e:NONCE (must not
-- be granted any more; its not-after), ended ('first next due': those nonces are
-- listed by number, and due is when the first may be forgotten), n:NUMBER (such a
-- nonce), o:OWNER (the owner's grant), w:NONCE (a waiter), v:OWNER (nonces a named
-- owner has queued, each with a space behind), looks (such nonces of an owner that
-- holds now, who have yet to be told), r:NONCE (the owner of a reading session).
-- Users' strings stand behind a prefix or at the end of a record, never elsewhere.
--
-- TIME moves while a script runs and key expiry does not, so it is read here,
-- once, and no decision looks at a key's TTL.

local clock = redis.call('TIME')
local micros = clock[1] * 1000000 + clock[2]
local now = (micros - micros % 1000) / 1000

-- An error here says that KEYS[1] is not ours to touch: what a script has written
-- is not taken back when a later command fails.
local fields = redis.pcall('HMGET', KEYS[1], 'kind', 'token', 'queued', 'holder', 'e:' .. nonce, 'o:' .. owner, 'w:' .. nonce, 'ended', 'looks')

-- Lua prints 1.8e15 by itself: numbers of more than 14 digits, which are those in
-- microseconds, leave as text through here.
local function text(number)
  return string.format('%d', number)
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
