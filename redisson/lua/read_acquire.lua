-- Takes a lock for reading, or states how many read holds its owner has.
-- KEYS[1] hash the lock
-- KEYS[2] string and more: a key for each of the owner's holds
-- ARGV[1] owner
-- ARGV[2] count how many holds it has with this one
-- ARGV[3] lease ms
-- ARGV[4] after server ms after which the request is refused; 0: never
-- RETURNS code (as acquire), ms that are left of the lease, now, 0
-- uses: clock lease reads
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
if mode == 'write' and redis.call('HEXISTS', KEYS[1], ARGV[1] .. ':write') == 0 then
  return {0, redis.call('PTTL', KEYS[1]), now, 0}
end
local lease = tonumber(ARGV[3])
if not mode then
  redis.call('HSET', KEYS[1], 'mode', 'read')
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
keep(2, tonumber(ARGV[2]), lease)
extend(KEYS[1], lease)
return {1, lease, now, 0}
