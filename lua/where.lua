-- Says whether the client's inbox is on the server that is asked: where it is not,
-- another server has taken over since. Writes nothing.
-- KEYS[1] hash a lock's state; says which server is asked
-- ARGV[1] channel the client's own inbox
-- RETURNS 1 it is, 0 it is not, -1 it cannot be said: a node of a cluster does not
--   know who is subscribed to the others, or the user may not ask
local subscribed = KEYS[1] and redis.pcall('PUBSUB', 'NUMSUB', ARGV[1])
if not subscribed.err and subscribed[2] > 0 then
  return 1
end
-- Asked only where nobody is subscribed: a server that is no node of a cluster
-- answers with an error, and counts it.
if subscribed.err or type(redis.pcall('CLUSTER', 'MYID')) == 'string' then
  return -1
end
return 0
