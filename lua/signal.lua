-- Moves the longest waiting waiters of a condition to the lock's queue, to get the lock in their turn. The session that
-- signals must hold the lock for writing. If a waiter goes before its turn, settle passes its signal on.
-- KEYS[1] hash the lock's state
-- KEYS[2] zset the queue
-- ARGV[1] identity 'NONCE CLIENT o:OWNER' of the session that holds the lock
-- ARGV[2] number of this signal, larger than any before it; copies have the same number
-- ARGV[3] condition its name
-- ARGV[4] most waiters to move; 0: all
-- ARGV[5] keep ms that the hash outlives the last deadline
-- ARGV[6] prefix of inboxes, which a client's ID completes
-- RETURNS now, more (1: ask again, there were too many for one call), held (0: not held, so nobody was moved)
-- uses: read clock record run state sessions inbox queue conditions settle
inbox_prefix = ARGV[6]
local by, number, most = read_identity(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[4])
local session = find_live(by.nonce, by.client, by.owner)
if not session or session.writes == 0 then
  return { now, 0, 0 }
end
if not state.conds or state.conds.signaller == by.nonce and number <= state.conds.number then
  return { now, 0, 1 }
end
touch(session.deadline - now, tonumber(ARGV[5]))
local moved, last = 0, true
while last and (most == 0 or moved < most) do
  last = signal(ARGV[3], 0)
  moved = last and moved + 1 or moved
end
if moved > 0 and last ~= nil then
  -- Remember this signal, so that a copy which arrives later moves nobody else.
  state.conds.signaller, state.conds.number = by.nonce, number
  save_conds()
end
finish(branches_changed()) -- a branch that was moved enters at once what its ancestor holds
return { now, last == nil and 1 or 0, 1 }
