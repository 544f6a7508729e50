-- Asks for the lock: takes it, joins the owner's grant, or queues. A waiter's heartbeat is the same request, with a
-- larger op and the waiter's place. So is a request that is repeated because no answer came.
-- KEYS[1] hash the lock's state
-- KEYS[2] zset the queue; left out while the slot migrates
-- ARGV[1] kind the lock's kind
-- ARGV[2] not_after server microseconds; a copy that arrives later changes nothing
-- ARGV[3] terms 'KEEP ECHO PREFIX': ms that the hash outlives the last deadline; 1 if the client wants an echo when a
--   request waits, which proves that the client hears and says whether its subscription is seen, 2 if an earlier echo
--   has said that it is not seen, which is noted, else 0; the prefix of inboxes, which a client's ID completes
-- ARGV[4...] six for each request of one client: identity ('NONCE CLIENT o:OWNER'), 'o:OWNER', counts ('OP WRITES READS
--   TTL ', holds for writing or one for reading), block of tokens, life (ttl and keep, ms), place (that it has; 0: a
--   new one; -1: do not queue); and one more, 'rests', if the name must rest after any of them
-- RETURNS for one request that took a free lock: the last token of the block, which is the time of the grant in
--   microseconds; followed by the number of tokens if that is less than the block.
--   Otherwise now, more (1: ask again, the queue was too long for one call), and five values for each request:
--     1 low high remaining wanted    held; wanted is '+' if others wait for its end, else ''
--     2 place wait first ghost  queued
--     3 0 wait 0 ghost           taken, and not queued
--     4 0 0 0 ''                 it waits on a condition
--     -4 0 0 0 ''                the nonce has ended: it is never granted again
--     -5 0 0 0 ''                the queue is needed, and KEYS[2] is missing
--     -6 0 0 0 ''                the owner or an ancestor reads: the owner cannot write before that hold is unlocked
--   or one answer for all requests: now, 0, -2 (late, or not_after is more than a minute ahead); now, 0, -3, kind
--   (another kind is in use); now, 0, -5. wait is ms until a lease or rest ends that is in the way; first is 1 at the
--   head of the queue; ghost is the nonce of the holding session if that is the client's own.
local fields = redis.pcall('HMGET', KEYS[1], 'holder', 'crowd', 'token', 'kind')
local clock = redis.call('TIME')

-- The usual case: one request, without a rest (else there is ARGV[10]), for a lock that is free and has no queue. A
-- late copy of an ended nonce does not get here: while an ended nonce is kept, crowd exists.
if not (fields.err or fields[1] or fields[2] or ARGV[10]) and (not fields[4] or fields[4] == ARGV[1]) then
  local token = clock[1] .. (#clock[2] == 6 and clock[2] or string.sub('00000' .. clock[2], -6))
  local left = ARGV[2] - token
  if left > 0 and left <= 60000000 then
    if not fields[3] then
      -- The counter is lost. It may have issued a token some microseconds ago, so take one token, not a block.
      redis.call('PEXPIRE', KEYS[1], ARGV[8])
      redis.call('HSET', KEYS[1], 'holder', ARGV[4], ARGV[5], ARGV[6] .. '1', 'token', token, 'kind', ARGV[1])
      redis.call('PEXPIRE', KEYS[1], ARGV[8])
      return { token, 1 }
    elseif token - fields[3] > 0 then -- compared as numbers: as texts, 999 would be more than 1000
      -- No two grants share a token, so soon after the last grant the block is smaller.
      local block = ARGV[7]
      if block ~= '1' and token - fields[3] < block + 0 then
        block = token - fields[3]
      end
      redis.call('PEXPIRE', KEYS[1], ARGV[8])
      redis.call('HSET', KEYS[1], 'holder', ARGV[4], ARGV[5], ARGV[6] .. block, 'token', token)
      return block == ARGV[7] and token or { token, block }
    end
  end
end
-- uses: clock record inbox
local keep, echo, inbox = string.match(ARGV[3], '^(%d+) (%d) (.*)$')
local not_after = tonumber(ARGV[2])
keep, echo, inbox_prefix = tonumber(keep), tonumber(echo), inbox

-- The second usual case: an anonymous request for writing queues behind another's session that holds alone and writes.
local queued = KEYS[2] and tonumber(fields[2] or 0)
if queued and fields[1] and fields[1] ~= ARGV[4] and fields[4] == ARGV[1] and not ARGV[10] and ARGV[9] == '0' and echo == 0
  and not_after > micros and not_after <= micros + 60000000 then
  local nonce, client, owner = identity_parts(ARGV[4])
  local _, writes, _, ttl = counts_parts(ARGV[6] .. ARGV[7])
  local its_nonce, its_client, its_owner = identity_parts(fields[1])
  local own = redis.call('HMGET', KEYS[1], 'w:' .. nonce, 'o:' .. its_owner, 'until')
  local _, held, _, lease = counts_parts(own[2] or '0 0 0 0 1')
  local ends = deadline_alone(own[3], fields[3] or 0, lease)
  if ends > now and held ~= '0' and writes == '1' and owner ~= its_owner and not is_named(owner) and not own[1] then
    local last = redis.call('ZCOUNT', KEYS[2], text(micros), '+inf') > 0 and redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')
    local place, deadline = last and last[2] + 1 or micros, text(now + ttl)
    -- Numbers are passed as text. Lua would write them in floating point, which takes several times as long to read.
    redis.call('PEXPIRE', KEYS[1], ARGV[8], 'GT')
    redis.call('ZADD', KEYS[2], text(place), nonce, '-' .. deadline, '-' .. nonce)
    if redis.call('PEXPIRE', KEYS[2], ARGV[8], 'GT') == 0 then
      redis.call('PEXPIRE', KEYS[2], ARGV[8], 'NX')
    end
    redis.call('HSET', KEYS[1], 'w:' .. nonce, write_waiter(deadline, text(ends), place, ARGV[6] .. ARGV[7], ARGV[4]), 'crowd', text(queued + 1))
    if queued == 0 then
      tell(its_client, 'wanted ' .. its_nonce)
    end
    return { now, 0, 2, place, ends - now, queued == 0 and 1 or 0, its_client == client and its_nonce or '' }
  end
end
-- uses: run state sessions queue conditions settle
local kind = ARGV[1]

if not_after <= micros or not_after > micros + 60000000 then
  return { now, 0, -2 }
end
if not KEYS[2] and state.crowd then
  return { now, 0, -5 }
end
if state.kind and state.kind ~= kind and (blocked() or KEYS[2] and waited_for()) then
  return { now, 0, -3, state.kind }
end

local function held(session)
  return { 1, session.low, session.high, session.deadline - now, wanting(session.owner) > 0 and '+' or '' }
end

-- Lets a request hold: in the grant that its owner or an ancestor has, or in a new one if grant is nil. An owner that
-- has a grant is let in ahead of the queue. Otherwise it would wait for itself.
local function let_in(request, grant)
  if not KEYS[2] and state.alone then
    return { -5, 0, 0, 0, '' }
  end
  if request.waiter and KEYS[2] then
    drop_waiter(request.nonce, read_waiter(request.waiter))
  end
  if grant and grant.mode == 'r' and request.mode == 'w' then
    -- Its client stops waiting. It has left the queue above, and a signal that it was given goes to another.
    owe(request.nonce)
    return { -6, 0, 0, 0, '' }
  end
  request.deadline = now + request.ttl
  put(request, grant)
  return held(request)
end

-- Queues a request, or renews its entry: the place stays, and an old copy moves neither op nor deadline back. told is
-- until when the client is told that the lock is taken. Returns an answer that conclude completes.
local function enqueue(request)
  if not KEYS[2] then
    return { -5, 0, 0, 0, '' }
  end
  request.place, request.deadline, request.told = request.asks_place, now + request.ttl, may_fit_at(request) or 0
  if request.waiter then
    local before = read_waiter(request.waiter)
    request.place = before.place
    request.op = math.max(before.op, request.op)
    request.counts = request.op .. string.match(request.counts, ' .*$')
    request.deadline = math.max(before.deadline, request.deadline)
  end
  insert_waiter(request, request.waiter)
  asking[request.nonce] = true
  return { 2, request.place, request.told, state.queued == 1 and 1 or 0, request }
end

-- Answers a branch whose ancestor holds. It waits only for branches that have entered there or wait in front of it.
local function enter(request, by)
  asking[request.nonce] = true
  local refused = not KEYS[2] or by.mode == 'r' and request.mode == 'w'
  local behind = not refused and admit_branches(by.owner)
  local granted = type(asking[request.nonce]) == 'table'
  if not granted and (refused or not behind and fits(request)) then
    return let_in(request, nearest_hold(request.owner))
  end
  return granted and { 2, 0, 0, 0, '' } or request.asks_place < 0 and { 3, 0, 0, 0, '' } or enqueue(request)
end

-- Answers one request. If it is queued, a later settle of this script may still grant it.
local function ask(request)
  -- Read this before settle drops an entry that is past its deadline: the request keeps its place.
  request.waiter = (state.queued > 0 or state.conds) and redis.call('HGET', KEYS[1], 'w:' .. request.nonce)
  if state.conds and keep_awaiting(request) then
    return { 4, 0, 0, 0, '' }
  end
  if not writer() and state.queued > 0 and request.asks_place <= 0 then
    -- Waiters come first. One of them may be an earlier copy of this request.
    asking[request.nonce] = true
    state.more = settle()
    if type(asking[request.nonce]) == 'table' then
      return { 2, 0, 0, 0, '' }
    end
  end
  -- An earlier copy of this request may have been granted. Then this copy gets its tokens and the rest of its lease.
  local session = find(request.nonce, request.client, request.owner)
  local dead = session and session.deadline <= now
  if dead and KEYS[2] then
    drop(session) -- its grant must not count it twice
  end
  if session and not dead or handed_over(request) then
    if dead or not session or session.orphan then
      return { -4, 0, 0, 0, '' }
    end
    return held(session)
  end
  local grant = request.named and nearest_hold(request.owner)
  if grant then
    return grant.owner == request.owner and let_in(request, grant) or enter(request, grant)
  end
  if request.rest and state.rester == request.nonce and request.op > state.rest_op then
    state.rests = 0 -- its call has had no hold of that grant, as it has asked again since, and nobody has joined it
  end
  if state.queued == 0 and fits(request) then
    return let_in(request)
  end
  return request.asks_place < 0 and { 3, 0, 0, 0, '' } or enqueue(request) -- not past waiters: readers would starve a writer
end

-- Completes the answer to a request that did not hold at once.
local function conclude(request, answer)
  local granted = asking[request.nonce]
  if type(granted) == 'table' then
    return held(granted)
  end
  local deadline = may_fit_at(request) or now
  if answer[1] == 2 then
    local waiter = answer[5]
    if request.mode ~= 'w' and not writer() then
      -- A reader may stand behind a waiting writer, and a user of a semaphore behind one that wants more permits. The
      -- first in the queue may be dead: ask again at its deadline.
      local _, packed = head()
      deadline = packed and math.min(deadline, read_waiter(packed).deadline) or deadline
    end
    if waiter.told ~= deadline then
      waiter.told = deadline
      update_waiter(request.nonce, waiter)
    end
    if request.asks_place > 0 then
      answer[4] = head() == request.nonce and 1 or 0
    end
  end
  answer[3] = deadline - now
  answer[5] = ghost(request.client)
  return answer
end

local requests, longest_ttl = {}, 0
for i = 4, #ARGV - 5, 6 do
  local request = read_request(ARGV[i + 2] .. ARGV[i + 3], ARGV[i])
  request.asks_place = tonumber(ARGV[i + 5])
  request.ended = state.ended and redis.call('HGET', KEYS[1], 'e:' .. request.nonce)
  requests[#requests + 1] = request
  -- An ended request gets no lease, so the hash of a free lock need not live longer for it.
  longest_ttl = math.max(longest_ttl, request.ended and 0 or request.ttl)
end

if touch(longest_ttl, keep) then
  redis.call('HSET', KEYS[1], 'kind', kind)
  redis.call('PEXPIRE', KEYS[1], longest_ttl + keep)
end
state.kind = kind
if state.alone and state.alone.deadline <= now then
  drop(state.alone)
end
sweep_sessions()
state.more = 0

local answers = {}
for i, request in ipairs(requests) do
  answers[i] = request.ended and { -4, 0, 0, 0, '' } or ask(request)
end
if echo > 0 and KEYS[2] then
  sweep()
  sweep_conditions()
end
if (not writer() or branches_changed()) and unsettled() or budget <= 0 then
  state.more = settle()
end

local reply, waits = { now, state.more }, false
for i, request in ipairs(requests) do
  local answer = answers[i]
  if answer[1] == 2 or answer[1] == 3 then
    answer = conclude(request, answer)
  end
  waits = waits or answer[1] == 2 or answer[1] == 4
  if answer[1] == 3 and state.several then
    -- The hash now lives for this request too. So must the queue: it leads to the records of holders that have died.
    redis.call('PEXPIRE', KEYS[2], life(request.ttl, keep), 'GT')
  end
  for _, value in ipairs(answer) do
    reply[#reply + 1] = value
  end
end
finish()
if echo > 0 and waits then
  echo_to(requests[1].client, echo == 2 and now + longest_ttl)
end
return reply
