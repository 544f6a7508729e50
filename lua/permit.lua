-- Names what the other scripts need and the user may not run: what they have written
-- is not taken back when a command is refused half way, and the refusal does not
-- say which. Tries each command so that nothing is changed.
-- KEYS[1] hash the lock's state
-- KEYS[2] zset the queue
-- ARGV[1] channel the client's own inbox; '': the client hears on sharded channels only
-- ARGV[2] shard a sharded channel in the lock's slot: the one that such a client hears on
-- RETURNS the error of a server that takes no writes for now, if nothing is refused; or
--   the names of the commands that are refused, or of the channel; 'sharded' and the
--   server's words where PUBLISH is refused and SPUBLISH in the slot of the keys is not;
--   'unknown' where the server does not know sharded channels; 'old' and its version, or
--   '', where it is one before Redis 7.0
local refused = {}

-- Redis 7.0 brought GT, and acl_check_cmd too. A server before it says nothing of a
-- version in its errors. Others of that age are served if they know GT.
local prolonged = redis.pcall('PEXPIRE', KEYS[1], '1', 'GT')
if not redis.acl_check_cmd and type(prolonged) == 'table' and prolonged.err then
  local info = redis.pcall('INFO', 'server')
  return { 'old', type(info) == 'string' and string.match(info, 'redis_version:([^\r\n]+)') or '' }
end

-- What a command may be answered with that is no refusal of it: the key is another's,
-- or the server does not write for now. Every other error is one, whatever its words
-- are: each server has words of its own.
local passes = { WRONGTYPE = true, OOM = true, MISCONF = true, READONLY = true, NOREPLICAS = true }
-- What keeps the server from writing, and so locks from being taken. OOM stops no lock.
local stops = { MISCONF = true, READONLY = true, NOREPLICAS = true }
local stopped

local function try(name, reply)
  local message = type(reply) == 'table' and reply.err
  local code = message and string.match(message, '^%-?(%u+)')
  if message and not passes[code] then
    refused[#refused + 1] = name
  elseif stops[code] then
    stopped = reply
  end
end

local function verdict()
  if #refused == 0 and stopped then
    return stopped
  end
  return refused
end

try('time', redis.pcall('TIME'))
try('hmget', redis.pcall('HMGET', KEYS[1], '-'))
try('hget', redis.pcall('HGET', KEYS[1], '-'))
try('hdel', redis.pcall('HDEL', KEYS[1], '-'))
try('hscan', redis.pcall('HSCAN', KEYS[1], '0'))
if #refused == 0 then
  try('hset', redis.pcall('HSET', KEYS[1], '-', ''))
  redis.pcall('HDEL', KEYS[1], '-')
end
try('pexpire', prolonged)
try('zadd', redis.pcall('ZADD', KEYS[2], 'XX', '1', '-'))
try('zrem', redis.pcall('ZREM', KEYS[2], '-'))
try('zcount', redis.pcall('ZCOUNT', KEYS[2], '1', '0'))
try('zrange', redis.pcall('ZRANGE', KEYS[2], '1', '0'))
try('zrangebyscore', redis.pcall('ZRANGEBYSCORE', KEYS[2], '1', '0'))
try('zrevrange', redis.pcall('ZREVRANGE', KEYS[2], '1', '0'))
-- Not tried: a server that is no node of a cluster answers with an error, and counts it.
-- One that has no such command is none either.
local known, may = pcall(redis.acl_check_cmd, 'CLUSTER', 'MYID')
if known and not may then
  refused[#refused + 1] = 'cluster|myid'
end

if ARGV[1] ~= '' then
  try('pubsub|numsub', redis.pcall('PUBSUB', 'NUMSUB', ARGV[1]))
  local sent, before = redis.pcall('PUBLISH', ARGV[1], 'echo'), #refused
  try('publish, or the channel ' .. ARGV[1], sent)
  -- Some hosters run PUBLISH of a script as SPUBLISH, whose channel must be in the slot of
  -- the keys. So ask whether that would do.
  if #refused > before and type(redis.pcall('SPUBLISH', ARGV[2], 'echo')) == 'number' then
    refused[#refused + 1], refused[#refused + 2] = 'sharded', sent.err
  end
  return verdict()
end

-- Such a client publishes only in the slot of the keys, so PUBLISH is not needed.
local sent = redis.pcall('SPUBLISH', ARGV[2], 'echo')
if type(sent) == 'table' and not redis.acl_check_cmd then
  -- Both came with Redis 7.0.
  refused[#refused + 1] = 'unknown'
end
try('spublish, or the channel ' .. ARGV[2], sent)
try('pubsub|shardnumsub', redis.pcall('PUBSUB', 'SHARDNUMSUB', ARGV[2]))
return verdict()
