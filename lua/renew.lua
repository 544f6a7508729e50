-- Renews sessions of one client, of a lock each, as hold does one: only those that
-- are all of a writer's grant. Any other is left as it is, and its number is
-- returned: hold says what has become of it.
-- KEYS[1...] hash each lock's state
-- ARGV[1] client whose sessions they are
-- ARGV[2] ttl ms from now that each lease lasts at least
-- ARGV[3] keep ms that a hash outlives the last deadline
-- ARGV[4] sessions one text: 'nonce op writes reads length owner' of each, without
--   anything between; length is the owner's in bytes
-- RETURNS now, and the numbers, from 1, of those that were not renewed
local client, ttl, keep = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local clock = redis.call('TIME')
local micros = clock[1] * 1000000 + clock[2]
local now = (micros - micros % 1000) / 1000
local reply, from = { now }, 1

for i = 1, #KEYS do
  local nonce, op, counts, length, at = string.match(ARGV[4], '^(%S+) (%d+) (%d+ %d+) (%d+) ()', from)
  from = at + length
  local owner = string.sub(ARGV[4], at, from - 1)
  local fields = redis.pcall('HMGET', KEYS[i], 'holder', 'o:' .. owner)
  local low, high, last, deadline
  if fields[2] then
    low, high, last, deadline = string.match(fields[2], '^w (%d+) (%d+) %S+ %S+ (%d+) %d+ %d+ (%d+)$')
  end
  local lease, done = ' ' .. client .. ' ' .. nonce .. ' ', false
  if low and fields[1] == deadline .. lease .. owner and tonumber(deadline) > now and tonumber(op) > tonumber(last) then
    local later = string.format('%d', math.max(tonumber(deadline), now + ttl))
    local kept = redis.pcall('PEXPIRE', KEYS[i], ttl + keep, 'GT')
    if type(kept) == 'number' then
      local stored = redis.pcall('HSET', KEYS[i], 'o:' .. owner, 'w ' .. low .. ' ' .. high .. lease .. op .. ' ' .. counts .. ' ' .. later,
        'holder', later .. lease .. owner)
      done = type(stored) == 'number'
    end
  end
  if not done then
    reply[#reply + 1] = i
  end
end
return reply
