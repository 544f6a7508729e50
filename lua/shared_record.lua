-- The records of a lock: no other part takes one apart or puts one together.
--
-- A request is two texts from the queue to its last unlock, which its client makes and
-- scripts compare and copy:
--   identity  'NONCE CLIENT o:OWNER', or 'NONCE CLIENT WEIGHT/PERMITS o:OWNER' where it
--             asks a semaphore that has PERMITS for WEIGHT of them; an owner that begins
--             with '~' is anonymous: nobody else enters by it
--   counts    'OP WRITES READS TTL BLOCK'; holds by mode, ms, and how many tokens it has.
--             Where the name is to rest after it, that is said behind the TTL of a request:
--             '+MS', so long from its grant, or '%MS', until the next multiple of that
-- The hash has these fields, of which a lock that one session holds has none but the
-- first five, and a free one only the first two:
--   kind, token  the lock's kind, the largest token issued
--   holder       the identity of the session that holds alone
--   o:OWNER      its counts; its tokens are the last BLOCK up to token
--   until        its deadline; left out, it is TTL after its token, the instant of its grant
--   crowd        'QUEUED', how many wait, and ' +' behind it where there is any of those
--                below: left out, nothing is unusual
--   w:NONCE      one that waits: 'DEADLINE TOLD TICKET COUNTS IDENTITY'; TOLD is when the
--                lock ends as far as its client knows. TICKET 0: it waits on a condition,
--                since TOLD
--   v:OWNER      nonces that a named owner has in the queue, each with a space behind
--   several      sessions hold together: 'SINCE w OWNER' where the owner excludes others,
--                'SINCE r', or 'SINCE r USED' where they use so many permits; a grant whose
--                first token is below SINCE is over, and its permits are not among those
--   s:NONCE      one of them: 'LOW OP WRITES READS DEADLINE IDENTITY'; LOW, its first
--                token, says of which grant
--   g:OWNER      their owner's grant: 'LOW HIGH SESSIONS WRITING UNTIL', tokens, how many
--                sessions it has, how many of these write, the latest of their deadlines;
--                and behind it ' WEIGHT', the permits that it uses, where it uses any
--   b:OWNER      what an owner has of a grant that branches have entered:
--                'LOW PARENT SESSIONS WRITING BELOW WRITERS': the grant's first token; how long the
--                name of the ancestor is by whose hold it entered, 0: it began the grant; its sessions,
--                and how many of them write; the sessions that entered by its hold, and how
--                many of those write. SESSIONS and WRITING of g: count them all
--   nests        there are any of those
--   u:ANCESTOR   'TICKET.NONCE' of those in the queue whose owner descends from it, in their
--                order, each with a space behind
--   branches     there are any of those
--   rests        'UNTIL NONCE': once the grant of NONCE has ended, the name is taken by nobody
--                until then
--   looks        nonces of an owner that holds now, who have yet to be told
--   c:CONDITION  'FIRST LAST', the nonces that wait on it longest and shortest
--   i:NONCE      it waits on a condition, or has been signalled and not released since:
--                'TICKET BEFORE AFTER CONDITION'; TICKET, that of the signal, or 0, and
--                then between which nonces it waits; '-' for none
--   conds        'COUNT NONCE NUMBER OWED': how many there are of those, who has signalled
--                last, '-' for nobody, and with which of its statements; and nonces that
--                have gone with their signal, which is owed to others, each with a space behind
--   e:NONCE      it must not be granted any more: until when a copy of it counts
--   ended        'FIRST NEXT DUE': those nonces are listed by number, DUE is when the
--                first may be forgotten
--   n:NUMBER     such a nonce
-- and one of which crowd says nothing, and which goes with it:
--   unseen       until when PUBSUB does not say who hears: a waiter that does was not counted
-- Users' strings stand behind a prefix or at the end of a record, never elsewhere.

local function identity_parts(identity)
  local nonce, client, weight, permits, owner = string.match(identity, '^(%S+) (%S+) (%d*)/?(%d*) ?o:(.*)$')
  return nonce, client, owner, weight, permits
end

-- Of what is to rest it finds nothing: that is not usual.
local function counts_parts(counts)
  return string.match(counts, '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
end

local function waiter_parts(packed)
  return string.match(packed, '^(%d+) (%d+) (%d+) (%d+ %d+ %d+ %S+ %d+) (.*)$')
end

local function write_waiter(deadline, told, ticket, counts, identity)
  return deadline .. ' ' .. told .. ' ' .. text(ticket) .. ' ' .. counts .. ' ' .. identity
end

local function write_counts(op, writes, reads, ttl, tokens)
  return op .. ' ' .. writes .. ' ' .. reads .. ' ' .. ttl .. ' ' .. tokens
end

-- Returns ticket, the nonces before and after, and the condition.
local function condition_parts(packed)
  return string.match(packed, '^(%d+) (%S+) (%S+) (.*)$')
end

local function write_condition(ticket, before, after, condition)
  return ticket .. ' ' .. before .. ' ' .. after .. ' ' .. condition
end

local function read_conds(packed)
  local count, signaller, number, owed = string.match(packed, '^(%d+) (%S+) (%d+) (.*)$')
  return { count = tonumber(count), signaller = signaller, number = tonumber(number), owed = owed }
end

local function write_conds(c)
  return c.count .. ' ' .. c.signaller .. ' ' .. c.number .. ' ' .. c.owed
end

local function is_named(owner)
  return string.sub(owner, 1, 1) ~= '~'
end

-- The owner and its ancestors, nearest first. The name of a branch is that of its
-- parent, '~.', and letters among which there is neither.
local function lineage(owner)
  local names = { owner }
  local at = is_named(owner) and string.find(owner, '~.', 1, true)
  while at do
    table.insert(names, 2, string.sub(owner, 1, at - 1))
    at = string.find(owner, '~.', at + 2, true)
  end
  return names
end

-- The deadline of a session that holds alone: until and token are fields of the hash.
local function deadline_alone(until_ms, token, ttl)
  return tonumber(until_ms) or math.floor(token / 1000) + ttl
end

local function read_rests(packed)
  local until_ms, nonce = string.match(packed or '0', '^(%d+) ?(.*)$')
  return tonumber(until_ms), nonce
end

local function write_rests(until_ms, nonce)
  return until_ms .. ' ' .. nonce
end

local function read_several(packed)
  local since, exclusive = string.match(packed, '^(%d+) w (.*)$')
  return tonumber(since or string.match(packed, '^%d+')), exclusive, tonumber(string.match(packed, '^%d+ r (%d+)$') or 0)
end

local function write_several(since, exclusive, used)
  return text(since) .. (exclusive and ' w ' .. exclusive or ' r') .. (used > 0 and ' ' .. used or '')
end

local function read_identity(identity)
  local nonce, client, owner, weight, permits = identity_parts(identity)
  return {
    identity = identity, nonce = nonce, client = client, named = is_named(owner), owner = owner,
    weight = tonumber(weight) or 0, permits = tonumber(permits) or 0,
  }
end

-- The two texts taken apart, as a session or as a request.
local function read_request(counts, identity)
  local request = read_identity(identity)
  local op, writes, reads, ttl, from, rest, block = string.match(counts, '^(%d+) (%d+) (%d+) (%d+)([+%%]?)(%d*) (%d+)$')
  request.counts, request.op, request.writes, request.reads = counts, tonumber(op), tonumber(writes), tonumber(reads)
  request.rest, request.even = tonumber(rest), from == '%'
  request.ttl, request.block, request.mode = tonumber(ttl), tonumber(block), writes ~= '0' and 'w' or request.weight > 0 and 's' or 'r'
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
  local low, high, sessions, writing, deadline, weight = string.match(packed, '^(%d+) (%d+) (%d+) (%d+) (%d+) ?(%d*)$')
  return {
    low = tonumber(low), high = tonumber(high), sessions = tonumber(sessions), writing = tonumber(writing), deadline = tonumber(deadline),
    weight = tonumber(weight) or 0,
  }
end

local function write_grant(grant)
  return text(grant.low) .. ' ' .. text(grant.high) .. ' ' .. grant.sessions .. ' ' .. grant.writing .. ' ' .. grant.deadline
    .. (grant.weight > 0 and ' ' .. grant.weight or '')
end

local function read_part(packed, owner)
  local low, parent, sessions, writing, below, writers = string.match(packed, '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
  return {
    owner = owner, low = tonumber(low), parent = tonumber(parent), sessions = tonumber(sessions), writing = tonumber(writing),
    below = tonumber(below), writers = tonumber(writers),
  }
end

local function write_part(p)
  return text(p.low) .. ' ' .. p.parent .. ' ' .. p.sessions .. ' ' .. p.writing .. ' ' .. p.below .. ' ' .. p.writers
end
