-- Ends all holds of a lock, if it still has an owner that the caller saw.
-- KEYS[1] hash the lock
-- KEYS[2] list the queue of a fair lock
-- KEYS[3] zset the deadlines of a fair lock
-- ARGV[1] publish the command by which clients hear
-- ARGV[2] channel where they do
-- ARGV[3] message what they are told
-- ARGV[4] mode of a read/write lock in which it must be held; empty for any other lock
-- ARGV[5] owners and more: the fields of those who had it when the caller looked
-- RETURNS 1, or 0: none of them held it so
-- uses: clock line
if (redis.call('HGET', KEYS[1], 'mode') or '') ~= ARGV[4] then
  return 0
end
-- A request that is sent again must not end what somebody else has got since.
local function known()
  for i = 5, #ARGV do
    if redis.call('HEXISTS', KEYS[1], ARGV[i]) == 1 then
      return true
    end
  end
  return false
end
if redis.call('EXISTS', KEYS[1]) == 1 and not known() then
  return 0
end
local held = redis.call('DEL', KEYS[1])
if KEYS[2] then
  drop()
  wake(ARGV[1], ARGV[2])
elseif held == 1 then
  redis.call(ARGV[1], ARGV[2], ARGV[3])
end
return held
