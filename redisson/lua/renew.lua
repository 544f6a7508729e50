-- Makes a hold of any kind last for a lease from now, at least.
-- KEYS[1] hash the lock
-- KEYS[2] string and more: the keys of a reader's holds
-- ARGV[1] owner the field of the owner
-- ARGV[2] lease ms
-- RETURNS 1 and the ms for which the hash lives, or 0, 0: the owner does not hold. A reader's own keys live for the
--   lease at least; the hash may live longer, for another reader
-- uses: lease reads
local count = redis.call('HGET', KEYS[1], ARGV[1])
if not count then
  return {0, 0}
end
local lease = tonumber(ARGV[2])
local left = extend(KEYS[1], lease)
keep(2, tonumber(count), lease)
return {1, left}
