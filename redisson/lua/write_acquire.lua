-- Takes a lock for writing, or states how many write holds its owner has.
-- KEYS[1] hash the lock
-- ARGV[1] owner its field as a writer
-- ARGV[2] count how many holds it has with this one
-- ARGV[3] lease ms
-- ARGV[4] after server ms after which the request is refused; 0: never
-- ARGV[5] reader its field as a reader
-- RETURNS code (as acquire; -4 it reads), ms that are left of the lease, now, 0
-- uses: clock lease
if late(ARGV[4]) then
  return {-1, 0, now, 0}
end
local mode = redis.call('HGET', KEYS[1], 'mode')
local again = redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1
if not mode and redis.call('EXISTS', KEYS[1]) == 1 then
  return {-2, 0, now, 0}
end
-- This comes before the answer that the lock is taken: an owner must not wait while it has lost holds to unlock.
if not again and tonumber(ARGV[2]) > 1 then
  return {-3, 0, now, 0}
end
if mode and not again then
  if redis.call('HEXISTS', KEYS[1], ARGV[5]) == 1 then
    return {-4, 0, now, 0}
  end
  return {0, redis.call('PTTL', KEYS[1]), now, 0}
end
if not mode then
  redis.call('HSET', KEYS[1], 'mode', 'write')
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return {1, extend(KEYS[1], tonumber(ARGV[3])), now, 0}
