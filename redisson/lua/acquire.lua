-- Takes a lock or a fenced lock, or states how many holds its owner has.
-- KEYS[1] hash the lock: the owner, and its count
-- KEYS[2] string the counter of tokens, of a fenced lock only
-- ARGV[1] owner that asks
-- ARGV[2] count how many holds it has with this one
-- ARGV[3] lease ms
-- ARGV[4] after server ms after which the request is refused; 0: never
-- RETURNS code (1 held, 0 taken, -1 late, -2 another kind of lock, -3 lost: it had holds and
--   has none), ms that are left of the lease, now, token
-- uses: clock lease
if late(ARGV[4]) then
  return {-1, 0, now, 0}
end
local held = redis.call('EXISTS', KEYS[1]) == 1
if held and redis.call('HEXISTS', KEYS[1], 'mode') == 1 then
  return {-2, 0, now, 0}
end
local again = held and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1
-- This comes before the answer that the lock is taken: an owner must not wait while it has lost holds to unlock.
if not again and tonumber(ARGV[2]) > 1 then
  return {-3, 0, now, 0}
end
if held and not again then
  return {0, redis.call('PTTL', KEYS[1]), now, 0}
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
local left = extend(KEYS[1], tonumber(ARGV[3]))
local token = 0
if KEYS[2] then
  token = tonumber(again and redis.call('GET', KEYS[2]) or redis.call('INCR', KEYS[2]))
end
return {1, left, now, token}
