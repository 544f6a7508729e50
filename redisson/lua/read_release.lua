-- States how many read holds an owner has left.
-- KEYS[1] hash the lock
-- KEYS[2] string and more: the keys of the holds that it has had, the one that goes last
-- ARGV[1] owner
-- ARGV[2] count how many holds are left
-- ARGV[3] publish the command by which clients hear
-- ARGV[4] channel where they do
-- ARGV[5] tag with which the keys of all readers begin
-- RETURNS 1, or 0: the owner did not read
-- uses: reads
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return 0
end
local count = tonumber(ARGV[2])
redis.call('DEL', unpack(KEYS, count + 2))
if count > 0 then
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
else
  redis.call('HDEL', KEYS[1], ARGV[1])
end
if redis.call('HGET', KEYS[1], 'mode') == 'write' then
  return 1
end
if not settle(ARGV[5]) then
  redis.call(ARGV[3], ARGV[4], '0')
end
return 1
