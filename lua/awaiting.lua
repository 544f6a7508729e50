-- Reads a page of those who wait on a condition, the longest first. Writes nothing.
-- KEYS[1] hash the lock's state
-- ARGV[1] condition its name
-- ARGV[2] from 'NONCE SINCE FLOOR' with which the page begins, as the one before has said; or ''
-- ARGV[3] size entries that a page has at most; the dead may make it shorter, or empty
-- RETURNS now in ms, where the next page begins ('': there is none), and three for
--   each waiter alive: owner, since when it waits, in ms, and client
local ends = redis.pcall('HGET', KEYS[1], 'c:' .. ARGV[1])
if type(ends) == 'table' then
  return ends
end
local clock = redis.call('TIME')
-- uses: clock record
local from, after, floor = string.match(ARGV[2], '^(%S+) (%d+) (%d+)$')
local ticket, _, _, condition = condition_parts(from and redis.call('HGET', KEYS[1], 'i:' .. from) or '')
local _, since = waiter_parts(from and redis.call('HGET', KEYS[1], 'w:' .. from) or '')
-- A waiter that has left the chain has nobody after it, and one that waits anew stands at
-- its end: the page goes on with those that have waited for less long than it had.
local there = ticket == '0' and condition == ARGV[1] and (since or '0') == after
local nonce = there and from or string.match(ends or '-', '^%S+')
after = math.max(tonumber(not there and after or 0), tonumber(floor or 0))
local reply, left = { now, '' }, tonumber(ARGV[3])
-- Nobody has taken the dead off the chain yet, however many they are.
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
  local _, _, following = condition_parts(both[2] or '')
  nonce = following
end
return reply
