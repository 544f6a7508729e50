-- Ends the grant that has the given token, and no later one: a copy of this request that arrives after the lock has
-- changed hands removes nobody. The name does not rest afterwards.
-- KEYS[1] hash the lock's state
-- KEYS[2] zset the queue
-- ARGV[1] owner whose grant to end; '': end the rest of the name
-- ARGV[2] token the first token of that grant, or server ms until which the name rests
-- ARGV[3] after where the previous call stopped, or 0
-- ARGV[4] keep ms that the hash outlives the last holder
-- ARGV[5] prefix of inboxes, which a client's ID completes
-- RETURNS removed (1 or 0), more (1: ask again, the grant or the queue was too long for one call), after (where this
--   call stopped; 0: all sessions of the grant are gone)
-- uses: read clock record run state sessions inbox queue conditions settle
inbox_prefix = ARGV[5]
local owner, token, from, keep = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])
local removed, after = 0, 0
touch((blocked() or now) - now, keep)
sweep_sessions()

-- Drops a page of the grant's sessions, the shortest lease first. A branch's session that is renewed between two pages
-- is in a later page. Returns where the page ends, or 0 after the last.
local function drop_sessions()
  local first = '(' .. (from == '0' and text(-far) or from)
  local size = math.max(budget, 1)
  local page = redis.call('ZRANGE', KEYS[2], first, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, size, 'WITHSCORES')
  local last = page[2 * size]
  if last then
    -- Sessions with one deadline go together, because the next call begins behind that deadline.
    page = redis.call('ZRANGE', KEYS[2], first, last, 'BYSCORE', 'REV', 'WITHSCORES')
  end
  for i = 1, #page, 2 do
    budget = budget - 1
    local nonce = string.sub(page[i], 2)
    local session = stored_session(nonce)
    if session and session.low == token and (session.owner == owner or string.sub(session.owner, 1, #owner + 2) == owner .. '~.') then
      drop(session)
      tell(session.client, 'lost ' .. nonce)
    end
  end
  return last or 0
end

-- Removes the waiters at the front that may have had the lock already, in a run of the ended grant: a grant would go to
-- calls that are over. A waiter that has not had the lock keeps its place, and asks again.
local function drop_run(client)
  for _ = 1, longest_run do
    local nonce, packed = head()
    local waiter = packed and read_waiter(packed)
    if not waiter or waiter.client ~= client or waiter.mode ~= 'w' or waiter.named then
      return
    end
    drop_waiter(nonce, waiter)
    owe(nonce)
    tell(client, 'look ' .. nonce)
  end
end

local alone, grant = state.alone, shared_grant(owner)
if alone and alone.owner == owner and alone.low == token and alone.deadline > now then
  removed, state.rests = 1, 0
  drop(alone)
  tell(alone.client, 'lost ' .. alone.nonce)
  if state.kind == fair and alone.block > 1 and state.queued > 0 then
    drop_run(alone.client)
  end
elseif grant and grant.low == token then
  removed, state.rests = 1, 0
  redis.call('HDEL', KEYS[1], 'g:' .. owner)
  weigh(nil, grant)
  end_exclusion(owner, { writing = 0 })
elseif parts_of(owner, token)[1] then
  removed = 1
elseif owner == '' and token == state.rests and state.rests > now then
  removed, state.rests = 1, 0
end
if state.several and (removed == 1 or from ~= '0') then
  after = drop_sessions()
end
local more = finish(unsettled(), 0)
return { removed, after == 0 and more or 1, after }
