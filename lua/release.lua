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

-- The only session of a writer's grant ends, and no copy of its request counts: the
-- usual cases, where nobody waits and where the head of the queue can have the lock
-- at once, are answered before the rest is defined. The records are those of
-- shared_state and shared_queue.
local due = tonumber(string.match(not fields.err and fields[8] or '0', '%d+$'))
local usual = not (due > 0 and due <= now) and fields[6] and not fields[7] and until_ms == 0 and (fields[1] == 'plain' or fields[1] == 'fair')
local lease, deadline = string.match(usual and fields[6] or '', '^w %d+ %d+( %S+ %S+ )%d+ %d+ %d+ (%d+)$')
usual = lease == ' ' .. client .. ' ' .. nonce .. ' ' and fields[4] == deadline .. lease .. owner and tonumber(deadline) > now
if usual and (not fields[3] or fields[3] == '0') then
  redis.call('HDEL', KEYS[1], 'o:' .. owner, 'holder')
  redis.call('PEXPIRE', KEYS[1], keep)
  return { 2, now, 0 }
end

-- The head writes, has no name, its entry's lease runs, and it hears; who is next
-- has not been told of a later end than that of this lease.
local front = usual and KEYS[2] and redis.pcall('ZRANGEBYSCORE', KEYS[2], '(0', '+inf', 'LIMIT', 0, 2) or {}
if front[1] then
  local head, following = front[1], front[2]
  local entries = redis.call('HMGET', KEYS[1], 'w:' .. head, 'w:' .. (following or head))
  local to, op, ends, block, heir = string.match(entries[1] or '', '^(%S+) (%d+) %d+ (%d+) w (%d+) %d+ 0 (.*)$')
  local told = following and string.match(entries[2] or '', '^%S+ %d+ %d+ %d+ %S+ %d+ (%d+) ')
  local heard = to and tonumber(ends) > now and not (told and tonumber(ends) < tonumber(told))
    and redis.pcall('PUBSUB', 'NUMSUB', ARGV[1] .. to)
  if heard and not heard.err and heard[2] > 0 then
    local low, high = issue(tonumber(fields[2] or 0), tonumber(block))
    local queued, tokens, next_lease = tonumber(fields[3]), text(low) .. ' ' .. text(high), ' ' .. to .. ' ' .. head .. ' '
    if redis.call('ZREM', KEYS[2], head, '-' .. head) > 0 then
      queued = queued - 1
    end
    redis.call('HDEL', KEYS[1], 'o:' .. owner, 'w:' .. head)
    redis.pcall('PUBLISH', ARGV[1] .. to, 'grant ' .. head .. ' ' .. op .. ' ' .. tokens)
    redis.call('HSET', KEYS[1], 'o:' .. heir, 'w ' .. tokens .. next_lease .. op .. ' 1 0 ' .. ends, 'queued', queued,
      'holder', ends .. next_lease .. heir, 'token', text(high))
    return { 2, now, 0 }
  end
end
-- uses: state queue readers settle
inbox = ARGV[1]

until_ms = math.min(until_ms, now + 60000)
local refused = open() or check_queue(state.shared)
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
  local session = find_session(grant, client, nonce)
  if session then
    was = 2
    if grant.mode == 'r' then
      drop_reader(owner, grant, session)
    else
      cut_session(grant, session)
      if grant.sessions == '' then
        drop_grant()
      elseif not any_writes(grant) then
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
if ARGV[4] == '' and KEYS[2] then
  -- Who goes on where a heartbeat stopped: the dead behind the head go as well.
  sweep()
end
if state.queued > 0 or budget <= 0 then
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
