-- Asks for the lock: takes it, joins the owner's grant, or queues. A heartbeat is
-- the same request again under the ticket it has; so is a re-sent copy.
-- KEYS[1] hash the lock's state
-- KEYS[2] zset the queue; left out of the one-key form, for a slot that migrates
-- ARGV[1] inbox channel prefix, the client's ID completes it
-- ARGV[2] kind the lock's kind
-- ARGV[3] client the asking client's ID
-- ARGV[4] not_after server ms: a copy that arrives later changes nothing
-- ARGV[5] keep ms that the hash outlives the last deadline
-- ARGV[6] echo 1: where a request waits, publish 'echo' to the client's own inbox, to
--   prove that it hears
-- ARGV[7...] eight for each request: nonce, op, owner, named (0 or 1), mode, ttl
--   ms, block of tokens, place (a ticket; 0: a new one; -1: do not queue)
-- RETURNS now, more (1: ask again, the queue was too long for one call), and five
--   for each request: 1 low high remaining '' (held), 2 ticket wait first ghost
--   (queued), 3 0 wait 0 ghost (busy, not queued), -4 0 0 0 '' (ended, never again),
--   -6 0 0 0 '' (the owner reads: it cannot write before it has unlocked); or for all of them: now, 0, -2 (late), now, 0, -3, kind (another kind is in use),
--   now, 0, -5 (the one-key form cannot answer). wait is ms until the holder's lease
--   ends; first is 1 at the head of the queue; ghost is the nonce of the holding
--   session where that is the client's own.
local kind, client, keep = ARGV[2], ARGV[3], tonumber(ARGV[5])
local nonce, owner, not_after = ARGV[7], ARGV[9], tonumber(ARGV[4])
-- uses: read

-- One request for writing of an owner that has nothing here: the usual cases, of a
-- lock that is free and of one that is held, are answered before the rest is
-- defined. The records are those of shared_state and shared_queue.
local due = tonumber(string.match(not fields.err and fields[8] or '0', '%d+$'))
local usual = not (fields.err or due > 0 and due <= now or fields[5] or fields[6] or fields[7] or ARGV[15]) and (not fields[1] or fields[1] == kind)
  and (kind == 'plain' or kind == 'fair') and not_after > now and not_after <= now + 60000
  and not (ARGV[10] == '1' and string.sub(owner, 1, 1) == '~')
if usual and not fields[4] and (not fields[3] or fields[3] == '0') then
  local ttl, low, high = tonumber(ARGV[12]), issue(tonumber(fields[2] or 0), tonumber(ARGV[13]))
  local deadline, lease = text(now + ttl), ' ' .. client .. ' ' .. nonce .. ' '
  local first, last = text(low), text(high)
  local covered = redis.call('PEXPIRE', KEYS[1], ttl + keep, 'GT') == 1
  redis.call('HSET', KEYS[1], 'o:' .. owner, 'w ' .. first .. ' ' .. last .. lease .. ARGV[8] .. ' 1 0 ' .. deadline,
    'holder', deadline .. lease .. owner, 'token', last, 'kind', kind)
  if not covered then
    redis.call('PEXPIRE', KEYS[1], ttl + keep, 'NX')
  end
  return { now, 0, 1, first, last, ttl, '' }
end

-- It queues behind a holder whose lease runs: a new ticket, nobody else's name, no echo.
local busy = usual and KEYS[2] and ARGV[6] == '0' and ARGV[10] == '0' and ARGV[11] == 'w' and ARGV[14] == '0' and fields[4]
local told, holder, ghost = string.match(busy or '', '^(%d+) (%S+) (%S+) ')
if told and tonumber(told) > now then
  local ttl, queued = tonumber(ARGV[12]), tonumber(fields[3] or 0)
  local last = redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')
  local ticket, deadline = math.max(micros, tonumber(last[2] or 0) + 1), text(now + ttl)
  local place = text(ticket)
  redis.call('PEXPIRE', KEYS[1], ttl + keep, 'GT')
  local covered = redis.call('PEXPIRE', KEYS[2], ttl + keep, 'GT') == 1
  if redis.call('ZADD', KEYS[2], place, nonce, '-' .. deadline, '-' .. nonce) > 0 then
    queued = queued + 1
  end
  if not covered then
    redis.call('PEXPIRE', KEYS[2], ttl + keep, 'NX')
  end
  redis.call('HSET', KEYS[1], 'w:' .. nonce, client .. ' ' .. ARGV[8] .. ' ' .. place .. ' ' .. deadline .. ' w ' .. ARGV[13] .. ' '
    .. told .. ' 0 ' .. owner, 'queued', queued)
  return { now, 0, 2, ticket, told - now, queued == 1 and 1 or 0, holder == client and ghost or '' }
end
-- uses: state queue readers settle
inbox = ARGV[1]

local function refusal()
  if not_after <= now or not_after > now + 60000 then
    return { now, 0, -2 }
  end
  if not KEYS[2] and (state.queued > 0 or state.shared or kind == 'rw' or kind == 'fair rw') then
    return { now, 0, -5 }
  end
  if state.kind and state.kind ~= kind then
    if held() or KEYS[2] and (state.shared and readers_until() or redis.call('ZCOUNT', KEYS[2], '(' .. text(-far), '(' .. text(-now)) > 0) then
      return { now, 0, -3, state.kind }
    end
  end
  state.shared = kind == 'rw' or kind == 'fair rw'
end

local function leave_queue(request)
  if request.waiter and KEYS[2] then
    drop_waiter(request.nonce, unpack_waiter(request.waiter))
  end
end

local function new_session(request)
  local writes = request.mode == 'w' and 1 or 0
  return {
    client = client, nonce = request.nonce, op = request.op,
    writes = writes, reads = 1 - writes, deadline = now + request.ttl,
  }
end

-- An owner that holds is let in at once, ahead of every queue: it would wait for itself.
local function join(request)
  local grant = unpack_grant(request.grant)
  local session = find_session(grant, client, request.nonce)
  if not session then
    if not request.named or grant.sessions == '' then
      return nil
    end
    if grant.mode == 'r' and request.mode == 'w' then
      -- Its client waits no longer: what it leaves in the queue would be granted to nobody.
      leave_queue(request)
      return { -6, 0, 0, 0, '' }
    end
    session = new_session(request)
    put_session(grant, session)
    leave_queue(request)
    if grant.mode == 'r' then
      put_reader(request.owner, grant, session)
    else
      store_grant(request.owner, grant, 'kind', kind)
    end
  end
  return { 1, grant.low, grant.high, session.deadline - now, '' }
end

local function take(request)
  leave_queue(request)
  local low, high = issue(state.token, request.block)
  state.token = high
  local session, grant = new_session(request), { mode = request.mode, low = low, high = high, sessions = '' }
  put_session(grant, session)
  if request.mode == 'w' then
    store_grant(request.owner, grant, 'token', text(state.token), 'kind', kind)
  else
    put_reader(request.owner, grant, session, 'token', text(state.token), 'kind', kind)
  end
  return { 1, low, high, request.ttl, '' }
end

local function enqueue(request)
  local waiter = {
    client = client, op = request.op, ticket = math.max(request.place, 0), deadline = now + request.ttl,
    mode = request.mode, block = request.block, told = blocked() or 0,
    named = request.named, owner = request.owner,
  }
  if request.waiter then
    local before = unpack_waiter(request.waiter)
    waiter.ticket = before.ticket
    waiter.op = math.max(before.op, request.op)
    waiter.deadline = math.max(before.deadline, waiter.deadline)
  end
  insert_waiter(request.nonce, waiter, request.waiter, 'kind', kind)
  state.kind = kind
  asking[request.nonce] = true
  return { 2, waiter.ticket, waiter.told, state.queued == 1 and 1 or 0, waiter }
end

-- Judges one request; a queued one may still be granted by the settle that follows.
local function ask(request)
  if not state.owner and state.queued > 0 and request.place <= 0 then
    -- Whoever waits comes first; that may be an earlier copy of this request.
    asking[request.nonce] = true
    state.more = settle()
    if type(asking[request.nonce]) == 'table' then
      return { 2, 0, 0, 0, '' }
    end
    request.grant = redis.call('HGET', KEYS[1], 'o:' .. request.owner)
  end
  local joined = request.grant and (state.shared or state.owner == request.owner) and join(request)
  if joined then
    return joined
  end
  if state.queued == 0 and not (request.mode == 'r' and state.owner or request.mode == 'w' and blocked()) then
    return take(request)
  end
  if request.place < 0 then
    return { 3, 0, 0, 0, '' }
  end
  if not KEYS[2] then
    return { -5, 0, 0, 0, '' }
  end
  return enqueue(request)
end

-- Completes the answer of a request that was not held at once.
local function conclude(request, answer)
  local granted = asking[request.nonce]
  if type(granted) == 'table' then
    return { 1, granted[1], granted[2], granted[3] - now, '' }
  end
  local deadline = blocked() or now
  if answer[1] == 2 then
    local waiter = answer[5]
    if request.mode == 'r' and not state.owner then
      -- What stands before a reader is a writer that waits: it may be dead.
      local _, packed = head()
      deadline = packed and math.min(deadline, unpack_waiter(packed).deadline) or deadline
    end
    if waiter.told ~= deadline then
      waiter.told = deadline
      update_waiter(request.nonce, waiter)
    end
    if request.place > 0 then
      answer[4] = head() == request.nonce and 1 or 0
    end
  end
  answer[3] = deadline - now
  answer[5] = state.client == client and state.owner and state.nonce or ''
  return answer
end

local refused = open() or not held() and check_queue() or refusal()
if refused then
  return refused
end

local requests, longest = {}, 0
for i = 7, #ARGV, 8 do
  local request = {
    nonce = ARGV[i], op = tonumber(ARGV[i + 1]), owner = ARGV[i + 2], named = ARGV[i + 3] == '1',
    mode = ARGV[i + 4], ttl = tonumber(ARGV[i + 5]), block = tonumber(ARGV[i + 6]), place = tonumber(ARGV[i + 7]),
  }
  -- An anonymous grant is passed on within its process as if nobody could have joined it.
  if request.named and string.sub(request.owner, 1, 1) == '~' then return redis.error_reply('ERR ~ begins the names of anonymous owners, by which nobody locks') end
  requests[#requests + 1] = request
  -- What has ended gets no lease: a free lock's hash is not kept for one.
  longest = math.max(longest, state.ended and i == 7 and 0 or request.ttl)
end

touch(longest, keep)
if state.fresh then
  redis.call('HSET', KEYS[1], 'kind', kind)
  state.kind = kind
  cover(longest, keep)
end
if state.owner and not held() then
  drop_grant()
end
state.more = 0

local answers = {}
for i, request in ipairs(requests) do
  request.grant, request.waiter, request.ended = state.grant, state.waiter, state.ended
  if i > 1 then
    local own = redis.call('HMGET', KEYS[1], 'o:' .. request.owner, 'w:' .. request.nonce, 'e:' .. request.nonce)
    request.grant, request.waiter, request.ended = own[1], own[2], own[3]
  end
  answers[i] = request.ended and { -4, 0, 0, 0, '' } or ask(request)
end
if ARGV[6] == '1' and KEYS[2] then
  sweep()
end
if not state.owner and state.queued > 0 or budget <= 0 or state.shared and ARGV[6] == '1' then
  state.more = settle()
end

local reply, waits = { now, state.more }, false
for i, request in ipairs(requests) do
  local answer = answers[i]
  if answer[1] == 2 or answer[1] == 3 then
    answer = conclude(request, answer)
  end
  waits = waits or answer[1] == 2
  for _, value in ipairs(answer) do
    reply[#reply + 1] = value
  end
end
close()
if ARGV[6] == '1' and waits then
  forget_ended()
  tell(client, 'echo')
end
return reply
