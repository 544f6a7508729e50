-- Ends a nonce, whatever it has come to: held, queued, or never arrived. The lock
-- goes to the head of the queue in the same step.
-- KEYS[1] hash the lock's state
-- KEYS[2] zset the queue; left out of the one-key form, for a slot that migrates
-- ARGV[1] inbox channel prefix, a client's ID completes it
-- ARGV[2] client the nonce's client
-- ARGV[3] nonce what ends
-- ARGV[4] owner whose grant it belongs to; '': whoever holds
-- ARGV[5] until server ms up to which an unanswered copy of the request may still
--   arrive and must be refused; 0: there is none
-- ARGV[6] keep ms that the hash outlives the last holder
-- RETURNS was (2 held, 1 queued, 0 neither), now, more (1: ask again, the queue was
--   too long for one call); or -5, now, 0 (the one-key form cannot answer)
local client, nonce, owner = ARGV[2], ARGV[3], ARGV[4]
local until_ms, keep = tonumber(ARGV[5]), tonumber(ARGV[6])
-- uses: read

-- The only session of a grant ends and nobody waits: the usual case, answered
-- before the rest is defined. The records are those of shared_state.
if fields[6] and not fields[7] and until_ms == 0 and (not fields[3] or fields[3] == '0') then
  local lease, deadline = string.match(fields[6], '^w %d+ %d+( %S+ %S+ )%d+ %d+ %d+ (%d+)$')
  if lease == ' ' .. client .. ' ' .. nonce .. ' ' and fields[4] == deadline .. lease .. owner and tonumber(deadline) > now
    and (fields[1] == 'plain' or fields[1] == 'fair') then
    redis.call('HDEL', KEYS[1], 'o:' .. owner, 'holder')
    redis.call('PEXPIRE', KEYS[1], keep)
    return { 2, now, 0 }
  end
end
-- uses: state queue readers settle
inbox = ARGV[1]

local refused = open() or check_queue()
if refused then
  return refused
end
if not KEYS[2] and (state.queued > 0 or state.shared) then
  return { -5, now, 0 }
end
local lease = math.max(state.owner and state.deadline - now or 0, until_ms - now, 0)
touch(lease, keep)

local was = 0
if state.owner and not held() then
  drop_grant()
end
if owner == '' and state.owner then
  owner = state.owner
  state.grant = redis.call('HGET', KEYS[1], 'o:' .. owner)
end
if state.grant and (state.shared or state.owner == owner) then
  local grant = unpack_grant(state.grant)
  local session, i = find_session(grant, client, nonce)
  if session then
    was = 2
    if grant.mode == 'r' then
      drop_reader(owner, grant, i)
    else
      table.remove(grant.sessions, i)
      if #grant.sessions == 0 then
        drop_grant()
      elseif writes(grant) == 0 then
        downgrade(owner, grant)
      else
        store_grant(owner, grant)
      end
    end
  end
end
if state.waiter then
  was = 1
  drop_waiter(nonce, unpack_waiter(state.waiter))
end
if until_ms > now then
  keep_ended(nonce, until_ms)
  cover(lease, keep)
end
local more = 0
if state.queued > 0 then
  if was == 0 then
    -- A client goes on where a heartbeat ran out of budget among dead waiters.
    budget = budget - sweep(budget)
  end
  more = settle()
elseif state.shared and KEYS[2] then
  sweep_readers(budget)
end
close()
if state.queued == 0 and not (state.owner or state.shared and KEYS[2] and readers_until()) then
  -- Nothing has a deadline any more but ended nonces: the keep time starts now.
  redis.call('PEXPIRE', KEYS[1], math.max(keep, until_ms - now))
end
return { was, now, more }
