-- Does for several locks at once what release and acquire do in the usual case: a release
-- of a session that holds alone while nobody waits, and one request for a lock that nobody
-- has and nobody waits for. What is anything else is left as it is, and is 0 in the reply:
-- its client sends the script itself.
-- KEYS[1...] hash the state of each lock: first of those that are released
-- ARGV[1] releases how many they are
-- ARGV[2...] two for each release: identity ('NONCE CLIENT o:OWNER'), 'o:OWNER'; where there
--   are requests, what they have in common: kind of lock, block of tokens, life (ttl and
--   keep, ms); and four for each request: not_after (server microseconds: a copy that
--   arrives later changes nothing), identity, 'o:OWNER', counts ('OP WRITES READS TTL ')
-- RETURNS for each of them what its own script does, or 0
-- What may fail as a whole fails before anything is done.
local clock = redis.call('TIME')
local answers, at = {}, 2
for i = 1, tonumber(ARGV[1]) do
  local fields = redis.pcall('HMGET', KEYS[i], 'holder', 'crowd')
  answers[i] = 0
  if fields[1] == ARGV[at] and not fields[2] and type(redis.pcall('HDEL', KEYS[i], 'holder', 'until', ARGV[at + 1])) == 'number' then
    answers[i] = 2
  end
  at = at + 2
end
if #answers == #KEYS then
  return answers
end
local kind, full, life = ARGV[at], ARGV[at + 1], ARGV[at + 2]
local token = clock[1] .. (#clock[2] == 6 and clock[2] or string.sub('00000' .. clock[2], -6))
local micros = tonumber(token)

-- Takes a lock that nobody has. Returns the block of tokens that it got, and otherwise what is false or an error.
local function take(i, last, identity, field, counts)
  local block, stored = full, nil
  if not last then
    -- A counter that was lost: what it had issued may be some microseconds old.
    block = 1
    -- Where PEXPIRE is refused nothing is stored: it would stay for ever.
    stored = redis.pcall('PEXPIRE', KEYS[i], life)
    stored = type(stored) == 'number' and redis.pcall('HSET', KEYS[i], 'holder', identity, field, counts .. block, 'token', token, 'kind', kind)
    redis.pcall('PEXPIRE', KEYS[i], life)
  elseif token - last > 0 then
    -- No two grants share a token: soon after the last one it is a smaller block.
    if block ~= '1' and token - last < block + 0 then
      block = token - last
    end
    stored = redis.pcall('PEXPIRE', KEYS[i], life)
    stored = type(stored) == 'number' and redis.pcall('HSET', KEYS[i], 'holder', identity, field, counts .. block, 'token', token)
  end
  return type(stored) == 'number' and block
end

at = at + 3
for i = #answers + 1, #KEYS do
  local fields = redis.pcall('HMGET', KEYS[i], 'holder', 'crowd', 'token', 'kind')
  local left, block = ARGV[at] - micros, nil
  if not (fields.err or fields[1] or fields[2]) and (not fields[4] or fields[4] == kind) and (not fields[3] or tonumber(fields[3])) and left > 0 and left <= 60000000 then
    block = take(i, fields[3], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3])
  end
  answers[i] = block and (block == full and token or { token, block }) or 0
  at = at + 4
end
return answers
