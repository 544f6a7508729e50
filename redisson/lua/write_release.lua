-- States how many write holds an owner has left. If it also reads, it goes on reading after the last, and other readers
-- may join it.
-- KEYS[1] hash the lock
-- ARGV[1] owner its field as a writer
-- ARGV[2] count how many holds are left
-- ARGV[3] publish the command by which clients hear
-- ARGV[4] channel where they do
-- ARGV[5] tag with which the keys of all readers begin
-- RETURNS 1, or 0: the owner did not write
-- uses: reads
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return 0
end
if ARGV[2] ~= '0' then
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
  return 1
end
redis.call('HDEL', KEYS[1], ARGV[1])
if redis.call('HLEN', KEYS[1]) > 1 then
  redis.call('HSET', KEYS[1], 'mode', 'read')
  settle(ARGV[5])
else
  redis.call('DEL', KEYS[1])
end
redis.call(ARGV[3], ARGV[4], '1')
return 1
