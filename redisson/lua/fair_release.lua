-- States how many holds the owner of a fair lock has left; one that has none leaves the queue.
-- KEYS[1] hash the lock
-- KEYS[2] list the queue
-- KEYS[3] zset the deadlines
-- ARGV[1] owner
-- ARGV[2] count how many holds are left; 0: it gives the lock up, and its place
-- ARGV[3] publish the command by which clients hear
-- ARGV[4] channel where they do, which a waiter's name completes
-- ARGV[5] wait ms that it might have been silent as the head of the queue
-- RETURNS 1, or 0: the owner did not hold
-- uses: clock line
drop()
local held = redis.call('HEXISTS', KEYS[1], ARGV[1])
if ARGV[2] ~= '0' then
  if held == 1 then
    redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
  end
  return held
end
if held == 1 then
  redis.call('DEL', KEYS[1])
end
if redis.call('ZSCORE', KEYS[3], ARGV[1]) then
  leave(ARGV[1], tonumber(ARGV[5]))
end
if redis.call('EXISTS', KEYS[1]) == 0 then
  wake(ARGV[3], ARGV[4])
end
return held
