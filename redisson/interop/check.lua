-- Judges who holds beside whom: every holder, in Go or Java, says when it begins and when it ends.
-- KEYS[1] hash what has been seen
-- ARGV[1] what enter or leave
-- ARGV[2] mode r or w
-- ARGV[3] language of the holder
-- ARGV[4] token of a fenced lock, or 0
-- RETURNS 1
if ARGV[1] == 'leave' then
  redis.call('HINCRBY', KEYS[1], ARGV[2], -1)
  return 1
end
local writers = tonumber(redis.call('HGET', KEYS[1], 'w') or 0)
local readers = tonumber(redis.call('HGET', KEYS[1], 'r') or 0)
if writers > 0 or ARGV[2] == 'w' and readers > 0 then
  redis.call('HINCRBY', KEYS[1], 'overlaps', 1)
end
redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
redis.call('HINCRBY', KEYS[1], ARGV[3], 1)
local token = tonumber(ARGV[4])
if token > 0 then
  if token <= tonumber(redis.call('HGET', KEYS[1], 'token') or 0) then
    redis.call('HINCRBY', KEYS[1], 'disorder', 1)
  end
  redis.call('HSET', KEYS[1], 'token', ARGV[4])
end
return 1
