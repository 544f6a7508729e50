-- Makes a session wait on a condition: in one step it gives up all holds, begins to wait, and the next gets the lock.
-- KEYS[1] hash the lock's state
-- KEYS[2] zset the queue
-- ARGV[1] identity 'NONCE CLIENT o:OWNER' of the session, which waits under it
-- ARGV[2] op number of this statement, larger than any before it; copies have the same number, and the
--   next number is never used by another statement: it marks a refusal
-- ARGV[3] writes how many holds for writing it has when it holds again
-- ARGV[4] ttl ms that its entry lasts without a heartbeat, and its lease when it holds again
-- ARGV[5] condition its name
-- ARGV[6] keep ms that the hash outlives the last deadline
-- ARGV[7] prefix of inboxes, which a client's ID completes
-- ARGV[8] token of its holds; another token shows that the session has a later grant
-- ARGV[9] echo as for acquire; left out: none
-- RETURNS now, more (1: ask for the queue to be settled, it was too long for one call), and
--   1 (it waits, or a copy of this statement made it wait), 0 (it does not hold), -1 (its owner also
--   holds by another session, or a branch has entered)
-- uses: read clock record run state sessions inbox queue conditions settle
inbox_prefix = ARGV[7]
local waiter, op, ttl = read_identity(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[4])
if state.crowd and redis.call('HGET', KEYS[1], 'w:' .. waiter.nonce) then
  return { now, 0, 1 }
end
local session = find_live(waiter.nonce, waiter.client, waiter.owner)
if not session then
  return { now, 0, 0 }
end

if op <= session.op then
  -- A copy: the statement was refused, or the session has waited and holds again.
  return { now, 0, op + 1 == session.op and -1 or 1 }
end
if tonumber(ARGV[8]) < session.low or tonumber(ARGV[8]) > session.high then
  -- Its lease had ended, and a late copy of its acquire was granted the lock again. Its client does not know of that
  -- grant, and the signal for which it would wait may have come in between.
  touch(0, tonumber(ARGV[6]))
  drop(session)
  return { now, finish(true), 0 }
end

head() -- a queue that is somebody else's key must be found before the session is dropped
touch(ttl, tonumber(ARGV[6]))
sweep_sessions()
local grant = state.several and grant_at(session.owner, session.low)
if grant and grant.sessions > 1 then
  -- The client goes on holding, so a copy of this statement that arrives when the reason has gone must be refused too.
  -- The session's op, op + 1, says that the statement was refused.
  change(session, op + 1, session.writes, session.reads, 0)
  return { now, finish(unsettled()), -1 }
end
-- It has used its earlier signal, if it had one, and now waits for another.
forget_condition(waiter.nonce)
drop(session)
waiter.counts, waiter.deadline = write_counts(op, tonumber(ARGV[3]), 0, ttl, 1), now + ttl
add_awaiting(waiter, ARGV[5])
if ARGV[9] then -- before finish, which removes the note if nobody waits after all
  echo_to(waiter.client, ARGV[9] == '2' and now + ttl)
end
return { now, finish(true), 1 }
