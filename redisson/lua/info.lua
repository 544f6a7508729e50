-- Reads who holds and how many wait.
-- KEYS[1] hash the lock
-- KEYS[2] list the queue of a fair lock; or string: the counter of tokens
-- ARGV[1] kind fair, fenced or empty: what KEYS[2] is
-- RETURNS the ms that are left of the lease, the queue's length or the token, and the
--   hash's fields and values
local more = 0
if ARGV[1] == 'fair' then
  more = redis.call('LLEN', KEYS[2])
elseif ARGV[1] == 'fenced' then
  more = tonumber(redis.call('GET', KEYS[2]) or 0)
end
local all = {redis.call('PTTL', KEYS[1]), more}
for i, part in ipairs(redis.call('HGETALL', KEYS[1])) do
  all[i + 2] = part -- unpack is for some thousands at most
end
return all
