-- Does release and acquire for several locks at once, in the usual case: the releasing session holds alone and nobody
-- waits, or a request finds a lock that is free and has no queue. For any other lock it changes nothing and answers 0.
-- The client then sends release or acquire for that lock alone.
-- KEYS[1...] hash the state of each lock: first the locks to release
-- ARGV[1] releases how many locks to release
-- ARGV[2...] two for each release: identity ('NONCE CLIENT o:OWNER'), 'o:OWNER'. Then, if there are requests, what they
--   have in common: kind of lock, block of tokens, life (ttl and keep, ms); and four for each request: not_after
--   (server microseconds; a copy that arrives later changes nothing), identity, 'o:OWNER', counts
--   ('OP WRITES READS TTL ')
-- RETURNS for each lock what its own script returns, or 0
-- Errors of commands are caught, so none ends the script halfway. Only TIME can fail, before anything is written.
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

-- Takes a free lock: the hash lives for life ms. Returns how many tokens it got, or false if the lock is not free.
local function take(i, last, identity, field, counts)
  local block, stored = full, nil
  if not last then
    -- The counter is lost. It may have issued a token some microseconds ago, so take one token, not a block.
    block = 1
    -- PEXPIRE comes first: if it is refused, nothing is stored that would stay for ever.
    stored = redis.pcall('PEXPIRE', KEYS[i], life)
    stored = type(stored) == 'number' and redis.pcall('HSET', KEYS[i], 'holder', identity, field, counts .. block, 'token', token, 'kind', kind)
    redis.pcall('PEXPIRE', KEYS[i], life)
  elseif token - last > 0 then
    -- No two grants share a token, so soon after the last grant the block is smaller.
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
