-- The sessions that hold. Usually it is one, alone. If there are several, each is a member of the queue's ZSET: 'r' and
-- the nonce, with the score -(deadline + far). So sessions come before all that waits, the longest lease first. A step
-- on one of them costs the same among ten as among ten thousand.

local far = 100000000000000

-- A waiter on a condition is a member too: 'c' and the nonce, with the score -(deadline + apart). That is between the
-- sessions and the queue's entries.
local apart = 50000000000000

-- Returns the member and the deadline of the longest lease among several sessions, if it has not ended.
local function longest()
  local first = state.several and redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES') or {}
  local deadline = first[2] and -tonumber(first[2]) - far or 0
  if deadline > now then
    return first[1], deadline
  end
end

-- Returns the owner that writes, which excludes all others, or nil.
local function writer()
  local alone = state.alone
  return alone and alone.writes > 0 and alone.owner or state.exclusive
end

-- Returns the latest deadline of those who hold, or nil if nobody does.
local function leased()
  local alone = state.alone
  if alone and alone.deadline > now then
    return alone.deadline
  end
  local _, deadline = longest()
  return deadline
end

-- Returns the instant until which a writer cannot have the lock, because somebody holds or the name rests, or nil.
local function blocked()
  local deadline = leased()
  if state.rests > math.max(deadline or 0, now) then
    return state.rests
  end
  return deadline
end

-- Called when the grant of a request begins. If the name must rest after it, stores that now: the name then rests
-- however the grant ends, even if its client dies. Otherwise forgets the rest of an earlier grant. That was kept even
-- when it was over, because the clock may step back.
local function rest_after(request)
  if request.rest then
    local since = request.even and now - now % request.rest or now
    state.rests, state.rester = since + request.rest, request.nonce
    redis.call('PEXPIRE', KEYS[1], state.rests - now + state.keep, 'GT')
    redis.call('HSET', KEYS[1], 'rests', write_rests(state.rests, state.rester, request.op))
  elseif state.rester then
    state.rests = 0
  end
end

-- Returns the earliest deadline of those who hold, or nil.
local function shortest()
  if state.alone then
    return leased()
  end
  local live = state.several and redis.call('ZCOUNT', KEYS[2], '-inf', '(' .. text(-(now + far))) or 0
  local last = live > 0 and redis.call('ZRANGE', KEYS[2], live - 1, live - 1, 'WITHSCORES')
  return last and -tonumber(last[2]) - far or nil
end

-- Returns how many permits are taken. Those of dead holders count until these are dropped, unless nobody else holds.
local function used()
  return leased() and (state.alone and state.alone.weight or state.used) or 0
end

local function stored_grant(owner)
  local packed = state.several and redis.call('HGET', KEYS[1], 'g:' .. owner)
  return packed and read_grant(packed, owner)
end

-- Returns the grant whose first token is low. It stands under the owner, or under the ancestor that began it.
local function grant_at(owner, low)
  for _, name in ipairs(state.nests and lineage(owner) or { owner }) do
    local grant = stored_grant(name)
    if grant and grant.low == low then
      return grant
    end
  end
end

-- Returns the grant unless it is over, else nil. It is over once all its leases have ended, or if its first token is
-- below state.since: its deadline may be that of a released session. Nobody may join such a grant, because later grants
-- have larger tokens.
local function unless_over(grant)
  return grant and grant.deadline > now and grant.low >= state.since and grant or nil
end

-- Returns the grant that stands under an owner while several sessions hold, unless it is over.
local function shared_grant(owner)
  return unless_over(stored_grant(owner))
end

-- Returns whether a request without a session is a late copy of one whose hold was handed over. An anonymous owner has
-- one nonce at a time: if it holds, it does so by a ticket's nonce, or that of the session that resumed it.
local function handed_over(request)
  local alone = state.alone
  return not request.named and (alone and alone.owner == request.owner and alone.deadline > now or shared_grant(request.owner))
end

-- Returns an owner's part of the grant with this first token, then that of the ancestor through whose hold it entered,
-- and so on. The list ends with the owner that began the grant. It is empty if no branch has entered the grant.
local function parts_of(owner, low)
  local parts, kept = {}, {}
  for _, name in ipairs(state.nests and lineage(owner) or {}) do
    local part = stored_part(name)
    kept[#name] = part and part.low == low and part or nil
  end
  local part = kept[#owner]
  while part do
    parts[#parts + 1] = part
    part = kept[part.parent]
  end
  return parts
end

-- Returns whether any hold through which a session entered has ended, or writes no more though the session does.
local function is_orphan(s)
  local parts = parts_of(s.owner, s.low)
  for i = 2, #parts do
    if parts[i].sessions <= 0 or s.writes > 0 and parts[i].writing <= 0 then
      return true
    end
  end
  return #parts > 0 and parts[#parts].parent > 0
end

-- Returns the hold of an owner, else that of its nearest ancestor that holds, or nil. below counts the sessions that
-- entered through it, writers those that write. An owner's hold counts as one that reads once a hold through which it
-- entered only reads, and not at all once one has ended. Nobody enters an anonymous hold: its calls pass it on.
local function nearest_hold(owner)
  local alone = state.alone
  for _, name in ipairs((alone or state.several) and lineage(owner) or {}) do
    if alone and alone.owner == name and alone.named and alone.deadline > now then
      return { owner = name, low = alone.low, high = alone.high, mode = alone.mode, below = 0, writers = 0 }
    elseif not alone then
      local grant, part = shared_grant(name), state.nests and stored_part(name)
      if part and (not grant or part.low == grant.low) then
        grant = part.sessions > 0 and unless_over(grant_at(name, part.low))
        -- If the hold that this owner entered only reads now, its write holds are over, but its read holds last.
        local s = { owner = name, low = part.low, writes = part.writing }
        local mode = grant and s.writes > 0 and not is_orphan(s) and 'w'
        s.writes = 0
        if mode or grant and not is_orphan(s) then
          return { owner = name, low = grant.low, high = grant.high, mode = mode or 'r', below = part.below, writers = part.writers }
        end
      elseif grant then
        return { owner = name, low = grant.low, high = grant.high, mode = state.exclusive == name and 'w' or 'r', below = 0, writers = 0 }
      end
    end
  end
end

-- Returns the session with this nonce, even if its lease has ended. One of several is found only while its grant lasts.
-- The owner '' stands for any.
local function find(nonce, client, owner)
  local s = state.alone
  if not s and state.several then
    s = stored_session(nonce)
    local grant = s and unless_over(grant_at(s.owner, s.low))
    if not grant then
      return nil
    end
    s.high, s.orphan = grant.high, state.nests and is_orphan(s)
  end
  return s and s.nonce == nonce and s.client == client and (owner == '' or s.owner == owner) and s or nil
end

-- Returns the session with this nonce if it holds. A session that entered through a hold which has ended does not hold.
-- It stays in the way of others until its client has heard of that, or its lease has ended.
local function find_live(nonce, client, owner)
  local s = find(nonce, client, owner)
  return s and s.deadline > now and not s.orphan and s
end

-- Returns how many wait for the end of an owner's holds: all waiters except its own branches.
local function wanting(owner)
  local below = state.branches and redis.call('HGET', KEYS[1], 'u:' .. owner) or ''
  charge(below)
  return math.max(state.queued - select(2, string.gsub(below, ' ', '')), 0)
end

-- Returns the nonce of the client's own session that is in the way, or ''. The client releases it if it is unknown.
local function ghost(client)
  local session = state.alone
  if state.exclusive and not session then
    local member = longest()
    session = member and stored_session(string.sub(member, 2))
  end
  return session and session.client == client and session.nonce or ''
end

-- Adds members with one deadline to the queue's key, which must live for TokenKeep after that. GT: its expiry never
-- moves earlier. ZADD comes first: if the key is not ours, it is refused, and another's key keeps its expiry. touch has
-- shown already that an expiry may be set.
local function add_to_queue(deadline, ...)
  local lease = deadline - now + state.keep
  local added = redis.call('ZADD', KEYS[2], ...)
  if redis.call('PEXPIRE', KEYS[2], lease, 'GT') == 0 then
    redis.call('PEXPIRE', KEYS[2], lease, 'NX')
  end
  return added
end

-- Stores the field several: several sessions hold now. owner excludes the sessions of all other owners (nil: nobody).
local function exclude(owner)
  state.exclusive, state.several = owner, write_several(state.since, owner, state.used)
  redis.call('HSET', KEYS[1], 'several', state.several)
end

-- Adds the permits of a grant that begins to those in use, and takes off those of one that ends. Either may be nil. A
-- grant older than since is over: its permits are not among those in use any more.
local function weigh(begins, ends)
  local more = begins and begins.weight or 0
  local less = ends and ends.low >= state.since and ends.weight or 0
  if more ~= less then
    state.used = math.max(state.used + more - less, 0)
    exclude(state.exclusive)
  end
end

-- Stores that the owner excludes nobody any more, if none of its sessions writes.
local function end_exclusion(owner, grant)
  if state.exclusive == owner and grant.writing == 0 then
    exclude(nil)
  end
end

-- Ends the state of several sessions once the last of them has gone. The next session can hold alone.
local function settle_several()
  local first = state.several and redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES') or {}
  if state.several and (not first[2] or tonumber(first[2]) >= -far) then
    state.several, state.exclusive, state.since, state.used, state.nests = nil, nil, 0, 0, nil
    redis.call('HDEL', KEYS[1], 'several', 'nests')
  end
end

-- Adds sessions and writing, each 1, 0 or -1, to an owner's part of a grant, and to the parts through which it entered.
-- Does nothing if no branch has entered the grant. Notes in state.ousts that sessions must be told that the hold they
-- entered has ended, and in state.stirred whose waiting branches may be let in.
local function count(owner, low, sessions, writing)
  local parts = parts_of(owner, low)
  for _, name in ipairs(parts[1] and state.branches and lineage(owner) or {}) do
    state.stirred[name] = true -- a waiter below this owner may now enter the hold of an ancestor
  end
  for i, part in ipairs(parts) do
    if i == 1 then
      part.sessions, part.writing = math.max(part.sessions + sessions, 0), math.max(part.writing + writing, 0)
      state.ousts = state.ousts or part.below > 0 and part.sessions == 0 or part.writers > 0 and part.writing == 0
    else
      part.below, part.writers = math.max(part.below + sessions, 0), math.max(part.writers + writing, 0)
    end
    if part.below == 0 and (part.parent == 0 or part.sessions == 0) then
      redis.call('HDEL', KEYS[1], 'b:' .. part.owner)
    else
      redis.call('HSET', KEYS[1], 'b:' .. part.owner, write_part(part))
    end
  end
end

-- Stores what settle must do for branches. nests is '2' (ousts): it must tell sessions that the hold they entered has
-- ended. branches: it may let in branches of the owners in stirred. The next script that settles goes on from there.
local function note_branches()
  local nests = state.nests and (state.ousts and '2' or '1')
  if nests and nests ~= state.nests then
    state.nests = nests
    redis.call('HSET', KEYS[1], 'nests', nests)
  end
  if state.branches then
    local branches = '1'
    for owner in pairs(state.stirred) do
      branches = branches .. '\255' .. owner
    end
    branches = state.queued > 0 and branches or nil
    if not branches then
      redis.call('HDEL', KEYS[1], 'branches')
    elseif branches ~= state.branches then
      redis.call('HSET', KEYS[1], 'branches', branches)
    end
    state.branches = branches
  end
end

-- Writes the b: fields that are missing when session s enters a grant through an ancestor's hold.
local function nest(s, ancestor, grant)
  if not parts_of(ancestor, s.low)[1] then
    redis.call('HSET', KEYS[1], 'b:' .. ancestor, write_part({ low = s.low, parent = 0, sessions = grant.sessions, writing = grant.writing, below = 0, writers = 0 }))
  end
  state.nests = state.nests or '1'
  if not parts_of(s.owner, s.low)[1] then
    redis.call('HSET', KEYS[1], 'nests', state.nests, 'b:' .. s.owner, write_part({ low = s.low, parent = #ancestor, sessions = 0, writing = 0, below = 0, writers = 0 }))
  end
end

-- Writes one of several sessions and its grant. begins: the session is new, so the grant must count it.
local function save(s, grant, begins)
  add_to_queue(s.deadline, text(-(s.deadline + far)), 'r' .. s.nonce)
  if begins then
    grant.sessions = grant.sessions + 1
  end
  grant.deadline = math.max(grant.deadline, s.deadline)
  redis.call('HSET', KEYS[1], 's:' .. s.nonce, write_session(s), 'g:' .. grant.owner, write_grant(grant))
  if begins then
    count(s.owner, s.low, 1, s.writes > 0 and 1 or 0)
  end
  end_exclusion(grant.owner, grant)
end

-- Changes the counts of a session, or moves its deadline later.
local function change(s, op, writes, reads, deadline)
  local wrote = s.writes > 0
  s.op, s.writes, s.reads, s.deadline = op, writes, reads, math.max(s.deadline, deadline)
  s.mode = writes > 0 and 'w' or 'r'
  if s == state.alone then
    redis.call('HSET', KEYS[1], 'o:' .. s.owner, write_counts(op, writes, reads, s.ttl, s.block), 'until', s.deadline)
    return
  end
  local grant, more = unless_over(grant_at(s.owner, s.low)), (writes > 0 and 1 or 0) - (wrote and 1 or 0)
  grant.writing = grant.writing + more
  if more ~= 0 then
    count(s.owner, s.low, 0, more)
  end
  save(s, grant)
end

-- Turns the session that holds alone into one of several.
local function spread()
  local s = state.alone
  -- Every older grant is over. If the queue's key expired before the hash, records of dead owners are still here. since
  -- says that they do not hold.
  state.since = math.max(state.since, s.low)
  local grant = { owner = s.owner, low = s.low, high = s.high, sessions = 0, writing = s.writes > 0 and 1 or 0, deadline = 0, weight = s.weight }
  save(s, grant, true)
  state.used = s.weight
  exclude(s.writes > 0 and s.owner or nil)
  redis.call('HDEL', KEYS[1], 'holder', 'until', 'o:' .. s.owner)
  state.alone = nil
end

-- Stores a new session. Only the usual cases and move make a holder in other ways. entered is the hold that the session
-- joins, or through which it enters: the session gets its tokens. With nil a new grant begins, with the next tokens.
local function put(s, entered)
  if entered then
    s.low, s.high = entered.low, entered.high
    if state.rests > 0 then
      state.rester = '-' -- another call has the grant too, so the first call cannot undo the rest
      redis.call('HSET', KEYS[1], 'rests', write_rests(state.rests, '-', 0))
    end
  else
    s.low, s.high = issue(state.token, s.block)
    state.token = s.high
    rest_after(s)
  end
  state.stirred[s.owner] = state.branches and true or nil
  if not state.alone and not state.several then
    s.block = s.high - s.low + 1
    state.alone = s
    redis.call('HSET', KEYS[1], 'holder', s.identity, 'until', s.deadline, 'o:' .. s.owner,
      write_counts(s.op, s.writes, s.reads, s.ttl, s.block), 'token', text(state.token), 'kind', state.kind)
    return
  end
  local over = not state.alone and not longest()
  if state.alone then
    spread()
  end
  local before = entered and grant_at(entered.owner, s.low) or stored_grant(s.owner)
  local grant = unless_over(before)
  if not grant then
    if over then
      -- All the others are dead, and nobody may join their grants.
      state.since, state.used = math.max(state.since, s.low), 0
      exclude(nil)
    end
    grant = { owner = s.owner, low = s.low, high = s.high, sessions = 0, writing = 0, deadline = 0, weight = s.weight }
    weigh(grant, before)
  end
  if entered and entered.owner ~= s.owner then
    nest(s, entered.owner, grant)
  end
  if s.writes > 0 then
    grant.writing = grant.writing + 1
    exclude(grant.owner)
  end
  save(s, grant, true)
  redis.call('HSET', KEYS[1], 'token', text(state.token), 'kind', state.kind)
end

local function save_conds()
  local c = state.conds
  if c.count > 0 or c.signaller ~= '-' or c.owed ~= '' then
    redis.call('HSET', KEYS[1], 'conds', write_conds(c))
  else
    redis.call('HDEL', KEYS[1], 'conds')
    state.conds = nil
  end
end

-- Called when a nonce that waited or held has gone. If it was signalled, it owes the signal to the next waiter of that
-- condition, and settle passes it on.
local function owe(nonce)
  if state.conds and redis.call('HGET', KEYS[1], 'i:' .. nonce) then
    state.conds.owed = state.conds.owed .. nonce .. ' '
    save_conds()
  end
end

-- Notes that a nonce owes no signal any more: its signal was passed on, or the nonce has come back. The caller saves.
local function clear_owed(nonce)
  local from, to = string.find(state.conds.owed, nonce .. ' ', 1, true)
  if from then
    state.conds.owed = string.sub(state.conds.owed, 1, from - 1) .. string.sub(state.conds.owed, to + 1)
  end
end

-- Forgets that a nonce waits on a condition or was signalled. A signalled nonce is remembered after its grant, until
-- the release: if it loses the lock, its signal goes to another.
local function forget_condition(nonce)
  if state.conds and redis.call('HDEL', KEYS[1], 'i:' .. nonce) == 1 then
    state.conds.count = state.conds.count - 1
    clear_owed(nonce)
    save_conds()
  end
end

-- Returns whether settle has something to do for branches. The hold that some wait to enter may have changed (stirred),
-- or a hold that some have entered may have ended (ousts). Both can happen while a writer holds.
local function branches_changed()
  return next(state.stirred) or state.ousts
end

-- Returns whether settle may have something to do: somebody waits, a signal is owed, or holds of branches changed.
local function unsettled()
  return state.queued > 0 or state.conds and state.conds.owed ~= '' or branches_changed()
end

-- Forgets the last signal of a session that ends: copies of that signal are refused from now on. So conds can go, too.
local function forget_signaller(nonce)
  if state.conds and state.conds.signaller == nonce then
    state.conds.signaller, state.conds.number = '-', 0
    save_conds()
  end
end

-- Hands what a session holds to another session of the same owner, within the same grant.
local function move(s, identity, op, deadline)
  local to, grant = read_identity(identity), grant_at(s.owner, s.low)
  forget_condition(s.nonce)
  forget_signaller(s.nonce)
  if s == state.alone then
    redis.call('HSET', KEYS[1], 'holder', identity, 'until', deadline, 'o:' .. s.owner, write_counts(op, s.writes, s.reads, s.ttl, s.block))
  else
    redis.call('ZREM', KEYS[2], 'r' .. s.nonce)
    redis.call('HDEL', KEYS[1], 's:' .. s.nonce)
  end
  s.identity, s.nonce, s.client, s.op, s.deadline = identity, to.nonce, to.client, op, deadline
  if s ~= state.alone then
    save(s, grant)
  end
end

-- Removes a session, even one past its deadline. Its grant ends with its last session, and excludes nobody once none of
-- its sessions writes. If the session was signalled, it owes the signal to another waiter, unless forget_condition was
-- called before. The lock is granted to nobody here: settle does that.
local function drop(s)
  owe(s.nonce)
  forget_signaller(s.nonce)
  if s == state.alone then
    redis.call('HDEL', KEYS[1], 'holder', 'until', 'o:' .. s.owner)
    state.alone = nil
    return
  end
  redis.call('ZREM', KEYS[2], 'r' .. s.nonce)
  redis.call('HDEL', KEYS[1], 's:' .. s.nonce)
  count(s.owner, s.low, -1, s.writes > 0 and -1 or 0)
  local grant = grant_at(s.owner, s.low)
  if not grant then
    return
  end
  grant.sessions, grant.writing = grant.sessions - 1, grant.writing - (s.writes > 0 and 1 or 0)
  if grant.sessions <= 0 then
    grant.writing = 0
    redis.call('HDEL', KEYS[1], 'g:' .. grant.owner)
    weigh(nil, grant)
  else
    redis.call('HSET', KEYS[1], 'g:' .. grant.owner, write_grant(grant))
  end
  end_exclusion(grant.owner, grant)
end

-- Drops sessions that are past their deadline, as many as the budget allows.
local function sweep_sessions()
  if not state.several or not KEYS[2] then
    return
  end
  local dead = redis.call('ZRANGEBYSCORE', KEYS[2], text(-(now + far)), '(' .. text(-far), 'LIMIT', 0, math.max(budget, 1))
  budget = budget - #dead
  for _, member in ipairs(dead) do
    local session = stored_session(string.sub(member, 2))
    if session then
      drop(session)
    else
      redis.call('ZREM', KEYS[2], member)
    end
  end
  if state.exclusive and not longest() then
    -- All sessions of that owner are past their deadline. So its grant ends now, even if the budget left some of them.
    redis.call('HDEL', KEYS[1], 'g:' .. state.exclusive)
    exclude(nil)
  end
  settle_several()
  note_branches() -- not every script that drops the dead settles
end
