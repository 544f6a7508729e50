-- Takes a fair lock, states how many holds its owner has, or joins the queue.
-- KEYS[1] hash the lock
-- KEYS[2] list the queue
-- KEYS[3] zset the deadlines of those in it, ms
-- ARGV[1] owner
-- ARGV[2] count how many holds it has with this one
-- ARGV[3] lease ms
-- ARGV[4] after server ms after which the request is refused; 0: never
-- ARGV[5] wait ms that the caller may be silent as the head of the queue
-- ARGV[6] queue 1: join the queue, or keep the place in it
-- ARGV[7] publish the command by which clients hear
-- ARGV[8] channel where they do, which a waiter's name completes
-- RETURNS code (as acquire), ms (1: left of the lease; 0: until asking again is of use), now, 0
-- uses: clock lease line
if late(ARGV[4]) then
  return {-1, 0, now, 0}
end
local owner, wait = ARGV[1], tonumber(ARGV[5])
local dropped = drop()
local head = redis.call('LINDEX', KEYS[2], 0)
local free = redis.call('EXISTS', KEYS[1]) == 0
if not free and redis.call('HEXISTS', KEYS[1], 'mode') == 1 then
  return {-2, 0, now, 0}
end
local again = redis.call('HEXISTS', KEYS[1], owner) == 1
if not again and tonumber(ARGV[2]) > 1 then
  return {-3, 0, now, 0}
end
if again or free and (not head or head == owner) then
  if not again and head then
    leave(owner, wait)
  end
  redis.call('HSET', KEYS[1], owner, ARGV[2])
  return {1, extend(KEYS[1], tonumber(ARGV[3])), now, 0}
end
local left = math.max(redis.call('PTTL', KEYS[1]), 0)
if ARGV[6] == '1' then
  local mine = redis.call('ZSCORE', KEYS[3], owner)
  if not mine then
    local last = redis.call('LINDEX', KEYS[2], -1)
    local from = last and redis.call('ZSCORE', KEYS[3], last) or now + left
    redis.call('ZADD', KEYS[3], string.format('%.0f', from + wait), owner)
    redis.call('RPUSH', KEYS[2], owner)
  elseif tonumber(mine) < now + wait then
    redis.call('ZADD', KEYS[3], string.format('%.0f', now + wait), owner)
  end
end
if free then
  if dropped then
    wake(ARGV[7], ARGV[8])
  end
  left = tonumber(redis.call('ZSCORE', KEYS[3], head)) - now
end
return {0, left, now, 0}
