-- Reads one page of the waiters on a condition, the longest waiting first. Writes nothing.
-- KEYS[1] hash the lock's state
-- ARGV[1] condition its name
-- ARGV[2] from 'NONCE SINCE FLOOR', where this page begins, as the previous page returned it; '' for the first page
-- ARGV[3] size most entries of a page; dead waiters can make it shorter, or empty
-- RETURNS now in ms, where the next page begins ('': this is the last), and three values for each live waiter: owner,
--   server ms since which it waits, client
-- uses: read clock record state
local ends = redis.call('HGET', KEYS[1], 'c:' .. ARGV[1])
local from, after, floor = string.match(ARGV[2], '^(%S+) (%d+) (%d+)$')
local place, _, _, condition = link_parts(from and redis.call('HGET', KEYS[1], 'i:' .. from) or '')
local _, since = waiter_parts(from and redis.call('HGET', KEYS[1], 'w:' .. from) or '')
-- The waiter at which the page begins may have left the chain, or stand at its end because it waits once more. Then go
-- through the chain from its beginning, and leave out waiters that have waited longer than it had.
local there = place == '0' and condition == ARGV[1] and (since or '0') == after
local nonce = there and from or string.match(ends or '-', '^%S+')
after = math.max(tonumber(not there and after or 0), tonumber(floor or 0))
local reply, left = { now, '' }, tonumber(ARGV[3])
-- The chain may have any number of dead waiters, so look at a limited number of them.
local looks = 500
while nonce and nonce ~= '-' do
  local both = redis.call('HMGET', KEYS[1], 'w:' .. nonce, 'i:' .. nonce)
  local waiter = both[1] and read_waiter(both[1])
  if left == 0 or looks == 0 then
    reply[2] = nonce .. ' ' .. text(waiter and waiter.told or 0) .. ' ' .. text(after)
    break
  end
  looks = looks - 1
  if waiter and waiter.deadline > now and waiter.told >= after then
    left = left - 1
    reply[#reply + 1] = waiter.owner
    reply[#reply + 1] = waiter.told
    reply[#reply + 1] = waiter.client
  end
  local _, _, following = link_parts(both[2] or '')
  nonce = following
end
return reply
