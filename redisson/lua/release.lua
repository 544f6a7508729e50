-- States how many holds the owner of a lock or a fenced lock has left.
-- KEYS[1] hash the lock
-- ARGV[1] owner
-- ARGV[2] count how many holds are left; 0: it gives the lock up
-- ARGV[3] publish the command by which clients hear
-- ARGV[4] channel where they do
-- RETURNS 1, or 0: the owner did not hold
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return 0
end
if ARGV[2] ~= '0' then
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
  return 1
end
redis.call('DEL', KEYS[1])
redis.call(ARGV[3], ARGV[4], '0')
return 1
