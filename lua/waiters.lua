-- Reads one page of the queue, in order. Writes nothing.
-- KEYS[1] hash the lock's state
-- KEYS[2] zset the queue
-- ARGV[1] after the last place of the previous page, or 0
-- ARGV[2] size most entries of a page
-- RETURNS now in microseconds, the last place of this page (0: it is the last page),
--   and four values for each live waiter: owner, mode, place, client
-- uses: read clock record state
local size = tonumber(ARGV[2])
local page = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', 0, size)
local reply = { micros, #page == 2 * size and tonumber(page[#page]) or 0 }
for i = 1, #page, 2 do
  local waiter = stored_waiter(page[i])
  if waiter and waiter.deadline > now then
    reply[#reply + 1] = waiter.owner
    reply[#reply + 1] = waiter.mode
    reply[#reply + 1] = waiter.place
    reply[#reply + 1] = waiter.client
  end
end
return reply
