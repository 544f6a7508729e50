-- Ends a nonce, whether it holds, waits or has never arrived. The lock goes to the first in the queue in the same step.
-- KEYS[1] hash the lock's state
-- KEYS[2] zset the queue; left out while the slot migrates
-- ARGV[1] identity 'NONCE CLIENT o:OWNER' of what ends; without OWNER the owner does not matter
-- ARGV[2] field 'o:OWNER' of the same
-- ARGV[3] until server ms up to which an unanswered copy of the request may still arrive and must be refused; 0 or -1:
--   there is none. Negative: the client has lost the hold, and a signal that it was given goes to another waiter
-- ARGV[4] terms 'KEEP PREFIX': ms that the hash outlives the last holder; prefix of inboxes, completed by a client's ID
-- ARGV[5] keep once more, if leases are longer: else the hash would live on as long as they do; or if ARGV[6] follows
-- ARGV[6] undone if the name must not rest afterwards: no call had a hold of it, or its work does not count; else ''
-- ARGV[7] served nonces of the same client that stood right behind it, and to which the client passed the lock
--   without a command: they end with it
-- RETURNS 2 (held, nobody waited); or was (2 held, 1 queued, 0 neither), now, more (1: ask again, the queue was too
--   long for one call); or -5, now, 0 (the queue is needed)
local fields = redis.pcall('HMGET', KEYS[1], 'holder', 'crowd')

-- The usual case: the session holds alone, nobody waits, and no copy of its request can arrive. As long as its record
-- is there, nobody else has held since, so whether its lease has ended does not matter.
local alone = fields[1] == ARGV[1] and ARGV[3] == '0'
if alone and not fields[2] then
  redis.call('HDEL', KEYS[1], 'holder', 'until', ARGV[2])
  if ARGV[5] then
    -- The token counter may be ahead of the clock. It must not expire before the clock has passed it.
    local token, clock = redis.call('HGET', KEYS[1], 'token'), redis.call('TIME')
    local ahead = math.floor(((token or 0) - (clock[1] * 1000000 + clock[2])) / 1000)
    redis.call('PEXPIRE', KEYS[1], ARGV[5] + math.max(ahead, 0))
  end
  return 2
end
local clock = redis.call('TIME')
-- uses: clock record run
local keep, inbox = string.match(ARGV[4], '^(%d+) (.*)$')
keep = tonumber(keep)

local served, skip = {}, {}
for nonce in string.gmatch(ARGV[7] or '', '%S+') do
  served[#served + 1], skip[nonce] = nonce, true
end

-- Grants the lock to the usual next holder: the first in the queue is anonymous, wants to write, lives and hears. The
-- second was told no later deadline than the first's, so it need not be told again. Returns true if it did. All other
-- holders are chosen in shared_settle.lua: in admit_queue, and branches in admit_branches.
local function grant_to_usual_next(queued)
  local waiting = {}
  for _, nonce in ipairs(redis.pcall('ZRANGEBYSCORE', KEYS[2], '(0', '+inf', 'LIMIT', 0, 2 + #served)) do
    waiting[#waiting + 1] = not skip[nonce] and nonce or nil
  end
  local nonce, following = waiting[1] or '', waiting[2]
  local entries = redis.call('HMGET', KEYS[1], 'w:' .. nonce, 'w:' .. (following or nonce), 'token', 'kind')
  local deadline, _, _, counts, identity = waiter_parts(entries[1] or '')
  local _, told = waiter_parts(following and entries[2] or '')
  local op, writes, _, ttl, block = counts_parts(counts or '')
  local _, client, owner = identity_parts(identity or '')
  local usual = writes == '1' and not is_named(owner) and tonumber(deadline) > now and not (told and tonumber(deadline) < tonumber(told))
  local heard = usual and redis.pcall('PUBSUB', 'NUMSUB', inbox .. client)
  if heard and not heard.err and heard[2] > 0 then
    local low, high = issue(tonumber(entries[3] or 0), tonumber(block))
    local first, last = text(low), text(high)
    local members, gone = { nonce, '-' .. nonce }, { ARGV[2], 'w:' .. nonce }
    for _, had in ipairs(served) do
      members[#members + 1], members[#members + 2], gone[#gone + 1] = had, '-' .. had, 'w:' .. had
    end
    queued = math.max(queued - math.ceil(redis.call('ZREM', KEYS[2], unpack(members)) / 2), 0)
    if queued == 0 then
      gone[#gone + 1], gone[#gone + 2] = 'crowd', 'unseen'
    end
    redis.call('HDEL', KEYS[1], unpack(gone))
    local run = entries[4] == fair and high > low and following and run_of(client, entries[2]) or ''
    local wanted = queued > select(2, string.gsub(run, ' ', '')) and ' +' or ''
    redis.pcall('PUBLISH', inbox .. client, 'grant ' .. nonce .. ' ' .. op .. ' ' .. first .. ' ' .. last .. wanted .. run)
    redis.call('HSET', KEYS[1], 'holder', identity, 'until', deadline, 'o:' .. owner, write_counts(op, '1', '0', ttl, text(high - low + 1)),
      'token', last, queued > 0 and 'crowd' or 'token', queued > 0 and text(queued) or last)
    return true
  end
end
local queued = alone and KEYS[2] and tonumber(fields[2])
if queued and grant_to_usual_next(queued) then
  return { 2, now, 0 }
end
fields = redis.pcall('HMGET', KEYS[1], 'holder', 'crowd', 'token', 'kind')
-- uses: state sessions inbox queue conditions settle
inbox_prefix = inbox

local ended = read_identity(ARGV[1])
local lost = string.sub(ARGV[3], 1, 1) == '-'
local until_ms = math.min(math.abs(tonumber(ARGV[3])), now + 60000)
if not KEYS[2] and state.crowd then
  return { -5, now, 0 }
end
local lease = math.max(blocked() or now, until_ms) - now
local fresh = touch(lease, keep)

local was = 0
local session = find(ended.nonce, ended.client, ended.owner)
if session and (session == state.alone or session.deadline > now) then
  was = session.orphan and 0 or 2
  if not lost then
    forget_condition(ended.nonce)
  end
  drop(session)
elseif state.alone and state.alone.deadline <= now then
  drop(state.alone)
end
local waiter = state.crowd and stored_waiter(ended.nonce)
if waiter then
  was = math.max(was, 1)
  drop_gone(ended.nonce, waiter)
end
for _, nonce in ipairs(served) do
  -- If the session's lease had ended before, one of the served may have been granted the lock since.
  local later, entry = find(nonce, ended.client, ''), state.crowd and stored_waiter(nonce)
  if later then
    drop(later)
  elseif entry then
    drop_gone(nonce, entry)
  end
end
if ARGV[6] == 'undone' and state.rester == ended.nonce then
  state.rests = 0
end
if until_ms > now then
  keep_ended(ended.nonce, until_ms)
  if fresh then
    redis.call('PEXPIRE', KEYS[1], lease + keep)
  end
end
sweep_sessions()
-- Dead waiters on conditions would keep crowd in the hash, and with it later calls from the usual case.
sweep_conditions()
if ended.owner == '' and KEYS[2] then
  -- Such a release may go on where a script ran out of budget (Client.settle): remove the dead behind the first too.
  sweep()
end
return { was, now, finish(unsettled() or budget <= 0 or state.looks ~= '', until_ms - now) }
