-- The records of a lock: no other part takes one apart or puts one together.
--
-- A request is two texts from the queue to its last unlock, which its client makes and
-- scripts compare and copy:
--   identity  'NONCE CLIENT o:OWNER'; an owner that begins with '~' is anonymous: nobody
--             else enters by it
--   counts    'OP WRITES READS TTL BLOCK'; holds by mode, ms, and how many tokens it has
-- The hash has these fields, of which a lock that one session holds has none but the
-- first five, and a free one only the first two:
--   kind, token  the lock's kind, the largest token issued
--   holder       the identity of the session that holds alone
--   o:OWNER      its counts; its tokens are the last BLOCK up to token
--   until        its deadline; left out, it is TTL after its token, the instant of its grant
--   crowd        'QUEUED', how many wait, and ' +' behind it where there is any of those
--                below: left out, nothing is unusual
--   w:NONCE      one that waits: 'DEADLINE TOLD TICKET COUNTS IDENTITY'; TOLD is when the
--                lock ends as far as its client knows
--   v:OWNER      nonces that a named owner has in the queue, each with a space behind
--   several      sessions hold together: 'SINCE w OWNER' where the owner excludes others, or
--                'SINCE r'; a grant whose first token is below SINCE is over
--   s:NONCE      one of them: 'LOW OP WRITES READS DEADLINE IDENTITY'; LOW, its first
--                token, says of which grant
--   g:OWNER      their owner's grant: 'LOW HIGH SESSIONS WRITING UNTIL', tokens, how many
--                sessions it has, how many of these write, the latest of their deadlines
--   looks        nonces of an owner that holds now, who have yet to be told
--   e:NONCE      it must not be granted any more: until when a copy of it counts
--   ended        'FIRST NEXT DUE': those nonces are listed by number, DUE is when the
--                first may be forgotten
--   n:NUMBER     such a nonce
-- Users' strings stand behind a prefix or at the end of a record, never elsewhere.

local function identity_parts(identity)
  return string.match(identity, '^(%S+) (%S+) o:(.*)$')
end

local function counts_parts(counts)
  return string.match(counts, '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
end

local function waiter_parts(packed)
  return string.match(packed, '^(%d+) (%d+) (%d+) (%d+ %d+ %d+ %d+ %d+) (.*)$')
end

local function write_waiter(deadline, told, ticket, counts, identity)
  return deadline .. ' ' .. told .. ' ' .. text(ticket) .. ' ' .. counts .. ' ' .. identity
end

local function write_counts(op, writes, reads, ttl, tokens)
  return op .. ' ' .. writes .. ' ' .. reads .. ' ' .. ttl .. ' ' .. tokens
end

local function is_named(owner)
  return string.sub(owner, 1, 1) ~= '~'
end

-- The deadline of a session that holds alone: until and token are fields of the hash.
local function deadline_alone(until_ms, token, ttl)
  return tonumber(until_ms) or math.floor(token / 1000) + ttl
end

local function read_several(packed)
  local since, exclusive = string.match(packed, '^(%d+) w (.*)$')
  return tonumber(since or string.match(packed, '^%d+')), exclusive
end

local function write_several(since, exclusive)
  return text(since) .. (exclusive and ' w ' .. exclusive or ' r')
end

local function read_identity(identity)
  local nonce, client, owner = identity_parts(identity)
  return { identity = identity, nonce = nonce, client = client, named = is_named(owner), owner = owner }
end

-- The two texts taken apart, as a session or as a request.
local function read_request(counts, identity)
  local request = read_identity(identity)
  local op, writes, reads, ttl, block = counts_parts(counts)
  request.counts, request.op, request.writes, request.reads = counts, tonumber(op), tonumber(writes), tonumber(reads)
  request.ttl, request.block, request.mode = tonumber(ttl), tonumber(block), writes == '0' and 'r' or 'w'
  return request
end

local function read_waiter(packed)
  local deadline, told, ticket, counts, identity = waiter_parts(packed)
  local waiter = read_request(counts, identity)
  waiter.deadline, waiter.told, waiter.ticket = tonumber(deadline), tonumber(told), tonumber(ticket)
  return waiter
end

local function read_session(packed)
  local low, op, writes, reads, deadline, identity = string.match(packed, '^(%d+) (%d+) (%d+) (%d+) (%d+) (.*)$')
  local session = read_identity(identity)
  session.low, session.op, session.deadline = tonumber(low), tonumber(op), tonumber(deadline)
  session.writes, session.reads = tonumber(writes), tonumber(reads)
  return session
end

local function write_session(s)
  return text(s.low) .. ' ' .. s.op .. ' ' .. s.writes .. ' ' .. s.reads .. ' ' .. s.deadline .. ' ' .. s.identity
end

local function read_grant(packed)
  local low, high, sessions, writing, deadline = string.match(packed, '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
  return {
    low = tonumber(low), high = tonumber(high), sessions = tonumber(sessions), writing = tonumber(writing), deadline = tonumber(deadline),
  }
end

local function write_grant(grant)
  return text(grant.low) .. ' ' .. text(grant.high) .. ' ' .. grant.sessions .. ' ' .. grant.writing .. ' ' .. grant.deadline
end
