-- Says whether the client's inbox is on the server that is asked: where it is not,
-- another server has taken over since. Writes nothing.
-- KEYS[1] hash a lock's state; says which server is asked
-- ARGV[1] channel the client's own inbox
-- RETURNS 1 it is, 0 it is not, -1 it cannot be said: a node of a cluster does not
--   know who is subscribed to the others, or the user may not ask
local subscribed = KEYS[1] and redis.pcall('PUBSUB', 'NUMSUB', ARGV[1])
if subscribed.err or type(redis.pcall('CLUSTER', 'MYID')) == 'string' then
  return -1
end
return subscribed[2] > 0 and 1 or 0
