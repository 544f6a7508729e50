-- Reads who holds a lock of any kind, and how many wait. Writes nothing.
-- KEYS[1] hash the lock's state
-- KEYS[2] zset the queue
-- ARGV[1] after the deadline at which the previous page of sessions ended, or 0
-- ARGV[2] size sessions of a page; sessions with one deadline are not divided, so a page may have more
-- RETURNS now, kind ('' if there is no hash), live waiters, the deadline at which this page ended (0: it is the last
--   page), ms for which the name still rests (0: it does not, or somebody holds), live waiters on conditions, and eight
--   values for each owner with sessions in the page: owner, mode, holds, low, high, remaining ms, the client with that
--   lease, and the permits of a semaphore that its grant uses, or 0
-- uses: read clock record state sessions
local waiting = redis.call('ZCOUNT', KEYS[2], '(' .. text(-apart), '(' .. text(-now))
local awaiting = state.conds and redis.call('ZCOUNT', KEYS[2], '(' .. text(-far), '(' .. text(-(now + apart))) or 0
local after, size = tonumber(ARGV[1]), tonumber(ARGV[2])
local reply = { now, state.kind or '', waiting, 0, leased() and 0 or math.max(state.rests - now, 0), awaiting }

local function describe(s)
  for _, value in ipairs({ s.owner, s.mode, s.holds, s.low, s.high, s.deadline - now, s.client, s.weight }) do
    reply[#reply + 1] = value
  end
end

-- Returns the members of a page, the longest lease first. The first page has the shortest leases: a session that is
-- renewed between two pages is in a later page, and is not passed over. Sets reply[4] if this is not the last page.
local function page_of_sessions()
  local till = '(' .. text(-(math.max(after, now) + far))
  local left, from = redis.call('ZCOUNT', KEYS[2], '-inf', till), '-inf'
  if left > size then
    from = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', till, 'WITHSCORES', 'LIMIT', left - size, 1)[2]
    reply[4] = -tonumber(from) - far
  end
  return redis.call('ZRANGEBYSCORE', KEYS[2], from, till)
end

-- Adds up the holds of each owner in a page. The longest lease comes first: its client and deadline are those reported.
local function describe_page()
  local owners, found = {}, {}
  for _, member in ipairs(page_of_sessions()) do
    local session = stored_session(string.sub(member, 2))
    local sum = session and found[session.owner]
    local grant = session and not sum and unless_over(grant_at(session.owner, session.low))
    if grant then
      local entered = grant.owner ~= session.owner
      local mode = (state.exclusive == session.owner or entered and session.writes > 0) and 'w' or session.weight > 0 and 's' or 'r'
      sum = { owner = session.owner, mode = mode, low = grant.low, high = grant.high, deadline = session.deadline, client = session.client, holds = 0, weight = entered and 0 or grant.weight }
      found[sum.owner], owners[#owners + 1] = sum, sum
    end
    if sum and sum.low == session.low then
      sum.holds = sum.holds + session.writes + session.reads
    end
  end
  for _, sum in ipairs(owners) do
    describe(sum)
  end
end

local alone = state.alone
if alone and after == 0 and alone.deadline > now then
  alone.holds = alone.writes + alone.reads
  describe(alone)
elseif state.several then
  describe_page()
end
return reply
