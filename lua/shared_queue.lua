-- The queue is one ZSET with two members for each waiter. Its nonce has the place in the queue as score (> 0). '-' and
-- its nonce has minus the deadline (< 0), by which dead entries are found anywhere in the queue.

-- What was read of the queue: the nonces at its front, in order, and records by nonce.
local front, records = {}, {}

-- Ends the script with an error reply if KEYS[2] is not a sorted set.
if KEYS[2] and state.crowd then
  front = redis.pcall('ZRANGEBYSCORE', KEYS[2], '(0', '+inf', 'LIMIT', 0, 2)
end
if front.err then
  return front
end

-- Whether the server is a node of a cluster, which does not know who is subscribed at other nodes; nil: not asked yet.
local cluster

-- Returns whether nobody is subscribed to the client's inbox, as far as this server sees. If the user may not ask, the
-- client counts as subscribed. In a cluster it always does, even with a sharded channel: while a slot migrates, its
-- subscribers are still at the old node.
local function hidden(client)
  local name, sharded = channel(client)
  local heard = sharded and redis.pcall('PUBSUB', 'SHARDNUMSUB', name) or redis.pcall('PUBSUB', 'NUMSUB', name)
  if not heard.err and heard[2] == 0 and cluster == nil then
    cluster = type(redis.pcall('CLUSTER', 'MYID')) == 'string'
  end
  return not heard.err and heard[2] == 0 and not cluster
end

-- Sends a client its echo, which says whether this server sees its subscription. noted_until is set if the client has
-- received "echo unseen" before: so this server hides subscribers. The field unseen says until when to assume that.
local function echo_to(client, noted_until)
  local unseen = hidden(client)
  if unseen and noted_until then
    redis.call('HSET', KEYS[1], 'unseen', math.max(noted_until, tonumber(redis.call('HGET', KEYS[1], 'unseen') or 0)))
  end
  tell(client, unseen and 'echo unseen' or 'echo seen')
end

-- Takes an entry, with the space behind it, off a list, which is one text in a field. A long text is searched, not
-- split. The field is deleted with its last entry.
local function drop_from(field, entry)
  local list = redis.call('HGET', KEYS[1], field) or ''
  charge(list)
  local from, to = string.find(list, entry, 1, true)
  if from and #list == #entry then
    redis.call('HDEL', KEYS[1], field)
  elseif from then
    redis.call('HSET', KEYS[1], field, string.sub(list, 1, from - 1) .. string.sub(list, to + 1))
  end
end

-- Returns a waiter's entry in the lists of its owner's ancestors, by which it is found when an ancestor holds.
local function branch_entry(waiter)
  return text(waiter.place) .. '.' .. waiter.nonce .. ' '
end

-- Puts a waiter into the lists of its owner's ancestors, before the entries with a larger place.
local function add_branch(waiter)
  local names, entry = lineage(waiter.owner), branch_entry(waiter)
  for i = 2, #names do
    local list = redis.call('HGET', KEYS[1], 'u:' .. names[i]) or ''
    charge(list)
    if not string.find(list, entry, 1, true) then
      local at, last = #list + 1, string.match(string.sub(list, -80), '(%d+)%.%S+ $')
      if last and tonumber(last) > waiter.place then
        for from, place in string.gmatch(list, '()(%d+)%.%S+ ') do
          at = math.min(at, tonumber(place) > waiter.place and from or at)
        end
      end
      state.branches = state.branches or '1'
      redis.call('HSET', KEYS[1], 'branches', state.branches, 'u:' .. names[i], string.sub(list, 1, at - 1) .. entry .. string.sub(list, at))
    end
  end
end

-- Counts the queue again. If the hash was lost and the queue was not, the queue has waiters that were never counted.
local function recount()
  state.queued = math.max(state.queued, redis.call('ZCOUNT', KEYS[2], '(0', '+inf'))
end

-- Removes a waiter from the queue, and from the lists of its owner and ancestors. waiter is nil if the hash has no
-- record of it. If the waiter was signalled, the caller must grant it the lock or call owe.
local function drop_waiter(nonce, waiter)
  if front[1] == nonce then
    table.remove(front, 1)
  else
    front = {}
  end
  records[nonce] = nil
  if redis.call('ZREM', KEYS[2], nonce, '-' .. nonce) > 0 then
    state.queued = math.max(state.queued - 1, 0)
  end
  if not waiter then
    recount()
  end
  redis.call('HDEL', KEYS[1], 'w:' .. nonce)
  if waiter and waiter.named then
    drop_from('v:' .. waiter.owner, nonce .. ' ')
    local names = lineage(waiter.owner)
    for i = 2, #names do
      drop_from('u:' .. names[i], branch_entry(waiter))
      state.stirred[names[i]] = state.branches and true or nil -- those behind it may be let in
    end
  end
end

local function waiter_text(w) -- its record w:NONCE, which read_waiter reads
  return write_waiter(w.deadline, w.told, w.place, w.counts, w.identity)
end

-- This script's grants, by nonce and in order. It sends their messages at its end, knowing who still waits behind them.
local granted = {}

-- How many holders get a message at most. The others hear with their next renewal.
local most_wanted = 128

-- Tells holders that a waiter has come, but only those for which nobody else waits: wanting counts the new one alone. A
-- holder's own branches do not wait for it. Later holders hear of it with their grant. Each holder costs a step.
local function tell_holders(waiter)
  if state.queued > 1 and not state.branches then
    return
  end
  local sessions = { state.alone }
  for _, member in ipairs(state.several and redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', '(' .. text(-(now + far)), 'LIMIT', 0, most_wanted) or {}) do
    sessions[#sessions + 1] = stored_session(string.sub(member, 2)) or nil
  end
  budget = budget - #sessions
  for _, s in ipairs(sessions) do
    if wanting(s.owner) == 1 and not granted[s.nonce] and string.sub(waiter.owner, 1, #s.owner + 2) ~= s.owner .. '~.' then
      tell(s.client, 'wanted ' .. s.nonce)
    end
  end
end

-- Puts a waiter into the queue, under a new place if its place is 0. known means that the hash has its record. If a
-- waiter with a place has none, the hash may have been lost, so the queue is counted again.
local function insert_waiter(waiter, known)
  local nonce, new = waiter.nonce, waiter.place == 0
  if new then
    -- Places keep the order of arrival, even if the server's clock has stepped back.
    local last = redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')
    waiter.place = math.max(micros, tonumber(last[2] or 0) + 1)
  end
  local added = add_to_queue(waiter.deadline, text(waiter.place), nonce, -waiter.deadline, '-' .. nonce)
  if added > 0 then
    state.queued = state.queued + 1
  end
  if not known and not new then
    recount()
  end
  front = {}
  records[nonce] = waiter_text(waiter)
  redis.call('HSET', KEYS[1], 'w:' .. nonce, records[nonce], 'kind', state.kind)
  if waiter.named then
    -- Once the owner holds, all of its requests in the queue are told to ask again, and re-enter.
    local list = redis.call('HGET', KEYS[1], 'v:' .. waiter.owner) or ''
    charge(list)
    if not string.find(list, nonce, 1, true) then
      redis.call('HSET', KEYS[1], 'v:' .. waiter.owner, list .. nonce .. ' ')
    end
    add_branch(waiter)
  end
  if added > 0 then
    tell_holders(waiter)
  end
end

-- Returns the nonce and the record of the first waiter, if any. The record is false if the hash has none.
local function head()
  if not front[1] then
    front = redis.call('ZRANGEBYSCORE', KEYS[2], '(0', '+inf', 'LIMIT', 0, 2)
  end
  local first, second = front[1], front[2]
  if first and records[first] == nil then
    if second then
      local both = redis.call('HMGET', KEYS[1], 'w:' .. first, 'w:' .. second)
      records[first], records[second] = both[1], both[2]
    else
      records[first] = redis.call('HGET', KEYS[1], 'w:' .. first)
    end
  end
  return first, records[first]
end

local function update_waiter(nonce, waiter)
  records[nonce] = waiter_text(waiter)
  redis.call('HSET', KEYS[1], 'w:' .. nonce, records[nonce])
end

-- Removes waiters that are past their deadline, anywhere in the queue, as many as the budget allows. Returns how many.
local function sweep()
  local dead = redis.call('ZRANGEBYSCORE', KEYS[2], text(-now), '(0', 'LIMIT', 0, math.max(budget, 1))
  for i, member in ipairs(dead) do
    if budget <= 0 then
      return i - 1
    end
    budget = budget - 1
    local nonce = string.sub(member, 2)
    drop_waiter(nonce, stored_waiter(nonce))
    owe(nonce)
  end
  return #dead
end
