-- Says whether the client is subscribed to its inbox on this server. If not, another server may have taken over since
-- the client subscribed. Writes nothing.
-- KEYS[1] hash a lock's state; it decides which server is asked
-- ARGV[1] channel the client's own inbox
-- RETURNS 1 (it is), 0 (it is not), -1 (unknown: a node of a cluster does not know who is
--   subscribed at other nodes, or the user may not ask)
local subscribed = KEYS[1] and redis.pcall('PUBSUB', 'NUMSUB', ARGV[1])
if not subscribed.err and subscribed[2] > 0 then
  return 1
end
-- Only now ask whether this is a cluster: elsewhere the command is an error, which the server counts.
if subscribed.err or type(redis.pcall('CLUSTER', 'MYID')) == 'string' then
  return -1
end
return 0
