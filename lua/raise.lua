-- Raises the token counter of a lock that a session holds. A quorum lock needs it: its token comes from several
-- servers, and the next grant on each of them must have a larger one.
-- KEYS[1] hash the lock's state
-- ARGV[1] identity 'NONCE CLIENT o:OWNER' of the session
-- ARGV[2] field 'o:OWNER' of the same
-- ARGV[3] token the smallest value that the counter must have
-- ARGV[4] life ms that the hash must live from now on; the time by which the counter is ahead of the clock is added
-- RETURNS 1 (the session's record is there, and the counter is large enough) or 0 (no record, or it reads with others)
local nonce = string.match(ARGV[1], '^%S+')
local record = redis.pcall('HMGET', KEYS[1], 'holder', ARGV[2], 'until', 'token', 's:' .. nonce, 'several')
if record.err then
  return record
end
-- As long as its record is there, nobody else has held since, so whether its lease has ended does not matter.
local alone = record[1] == ARGV[1]
local several = record[5] and 'o:' .. (string.match(record[6] or '', '^%d+ w (.*)$') or '') == ARGV[2]
if not alone and not several then
  return 0
end
if record[4] + 0 < ARGV[3] + 0 then
  -- The counter must not expire before this server's clock has passed it.
  local clock = redis.call('TIME')
  local ahead = math.floor((ARGV[3] - (clock[1] * 1000000 + clock[2])) / 1000)
  redis.call('PEXPIRE', KEYS[1], ARGV[4] + math.max(ahead, 0), 'GT')
  if alone and not record[3] then
    -- Without 'until' its deadline is token + TTL. The token changes, so write the deadline down first.
    local ttl = string.match(record[2], ' (%d+) %d+$')
    redis.call('HSET', KEYS[1], 'until', string.format('%.0f', math.floor(record[4] / 1000) + ttl))
  end
  redis.call('HSET', KEYS[1], 'token', ARGV[3])
end
return 1
