-- Ends a wait on a condition, because its context, its time or its client has ended or its signal may be lost. The
-- waiter goes to the queue of the lock, unless it was signalled before. The reply says which came first.
-- KEYS[1] hash the lock's state
-- KEYS[2] zset the queue
-- ARGV[1] identity 'NONCE CLIENT o:OWNER' of the waiter
-- ARGV[2] keep ms that the hash outlives the last deadline
-- ARGV[3] prefix of inboxes, which a client's ID completes
-- RETURNS now, more (1: ask for the queue to be settled, it was too long for one call), and
--   2 (it was signalled), 1 (it was on its condition, and waits for the lock from now on),
--   0 (it was on no condition: its signal, if it had one, may have gone to another)
-- uses: read clock record run state sessions inbox queue conditions settle
inbox_prefix = ARGV[3]
local who = read_identity(ARGV[1])
local waiter = state.crowd and stored_waiter(who.nonce)
if not waiter or waiter.place > 0 then
  local there = waiter or find_live(who.nonce, who.client, who.owner)
  local signalled = state.conds and redis.call('HGET', KEYS[1], 'i:' .. who.nonce)
  return { now, 0, there and signalled and 2 or 0 }
end
waiter.deadline = math.max(waiter.deadline, now + waiter.ttl)
touch(waiter.ttl, tonumber(ARGV[2]))
leave_condition(who.nonce)
enter_queue(waiter, 0)
return { now, finish(true), 1 }
