-- Says which of the commands and channels that the other scripts need are refused to this user. Those cannot find it
-- out: if a command is refused halfway, what they wrote before stays, and the error does not name the command. Tries
-- each command in a way that changes nothing.
-- KEYS[1] hash the lock's state
-- KEYS[2] zset the queue
-- ARGV[1] channel the client's own inbox, or '' if the client subscribes to sharded channels only
-- ARGV[2] shard a sharded channel in the slot of the lock, to which a client with sharded channels subscribes
-- RETURNS the names of the refused commands and channels; 'sharded' and the server's error if PUBLISH is refused and
--   SPUBLISH in the slot of the keys is not; 'old' and its version ('' if unknown) if the server is older than Redis
--   7.0. Or, if nothing is refused, the error of a server that refuses writes for now
local refused = {}

-- GT and acl_check_cmd came with Redis 7.0. A server without both is too old, and its errors name no version. A server
-- of another make may lack acl_check_cmd alone: it is not refused.
local prolonged = redis.pcall('PEXPIRE', KEYS[1], '1', 'GT')
if not redis.acl_check_cmd and type(prolonged) == 'table' and prolonged.err then
  local info = redis.pcall('INFO', 'server')
  return { 'old', type(info) == 'string' and string.match(info, 'redis_version:([^\r\n]+)') or '' }
end

-- Errors that do not mean that the user may not run the command: the key has another type, or the server refuses writes
-- for now. Every other error counts as a refusal, because each server words it differently.
local passes = { WRONGTYPE = true, OOM = true, MISCONF = true, READONLY = true, NOREPLICAS = true }
-- The errors of a server that refuses all writes, so that no lock can be taken. OOM is none of them: see touch.
local stops = { MISCONF = true, READONLY = true, NOREPLICAS = true }
local stopped

-- Notes the name if the reply is a refusal, or the reply if it is the error of a server that refuses writes.
local function note(name, reply)
  local message = type(reply) == 'table' and reply.err
  local code = message and string.match(message, '^%-?(%u+)')
  if message and not passes[code] then
    refused[#refused + 1] = name
  elseif stops[code] then
    stopped = reply
  end
end

note('time', redis.pcall('TIME'))
note('hmget', redis.pcall('HMGET', KEYS[1], '-'))
note('hget', redis.pcall('HGET', KEYS[1], '-'))
note('hdel', redis.pcall('HDEL', KEYS[1], '-'))
note('hscan', redis.pcall('HSCAN', KEYS[1], '0'))
-- HSET writes a field, so try it only if HDEL, which deletes it again, is permitted.
if #refused == 0 then
  note('hset', redis.pcall('HSET', KEYS[1], '-', ''))
  redis.pcall('HDEL', KEYS[1], '-')
end
note('pexpire', prolonged)
note('zadd', redis.pcall('ZADD', KEYS[2], 'XX', '1', '-'))
note('zrem', redis.pcall('ZREM', KEYS[2], '-'))
note('zcount', redis.pcall('ZCOUNT', KEYS[2], '1', '0'))
note('zrange', redis.pcall('ZRANGE', KEYS[2], '1', '0'))
note('zrangebyscore', redis.pcall('ZRANGEBYSCORE', KEYS[2], '1', '0'))
note('zrevrange', redis.pcall('ZREVRANGE', KEYS[2], '1', '0'))
-- CLUSTER is only looked up in the ACL: outside of a cluster it is an error, which the server counts. A lookup that
-- fails counts as allowed, because only a server without clusters lacks this command.
local known, may = pcall(redis.acl_check_cmd, 'CLUSTER', 'MYID')
if known and not may then
  refused[#refused + 1] = 'cluster|myid'
end

if ARGV[1] ~= '' then
  note('pubsub|numsub', redis.pcall('PUBSUB', 'NUMSUB', ARGV[1]))
  local sent, before = redis.pcall('PUBLISH', ARGV[1], 'echo'), #refused
  note('publish, or the channel ' .. ARGV[1], sent)
  -- Some hosts run PUBLISH as SPUBLISH, whose channel must be in the slot of the keys. Sharded channels work there.
  if #refused > before and type(redis.pcall('SPUBLISH', ARGV[2], 'echo')) == 'number' then
    refused[#refused + 1], refused[#refused + 2] = 'sharded', sent.err
  end
else
  -- A client with sharded channels publishes in the slot of the keys only, and needs no PUBLISH.
  note('spublish, or the channel ' .. ARGV[2], redis.pcall('SPUBLISH', ARGV[2], 'echo'))
  note('pubsub|shardnumsub', redis.pcall('PUBSUB', 'SHARDNUMSUB', ARGV[2]))
end
return #refused == 0 and stopped or refused
