-- The records of a lock in Redis. write_ functions only make the text of one, and read_ functions take it apart.
-- stored_ functions get the field first. acquire, release, usual, hold and raise also take records apart in short ways.
-- So do shared_run and awaiting with the record of a waiter.
--
-- A request is two texts, from the queue to its last unlock. Its client makes them; scripts compare and copy them:
--   identity  'NONCE CLIENT o:OWNER', or 'NONCE CLIENT WEIGHT/PERMITS o:OWNER' if it asks a semaphore of PERMITS for
--             WEIGHT of them. An owner that begins with '~' is anonymous: nobody re-enters its hold
--   counts    'OP WRITES READS TTL BLOCK': the latest op, holds for writing, holds for reading, lease in ms, number of
--             tokens. If the name must rest, '+MS' or '%MS' follows the TTL of a request: it rests for MS from the
--             grant, or until the next multiple of MS
-- The hash has these fields. A lock that one session holds and nobody waits for has only kind, token, holder, o:OWNER
-- and perhaps until. A free one has only kind and token, until the hash expires:
--   kind, token  the lock's kind with its layout, as in 'plain.1'; the largest token issued
--   holder       the identity of the session that holds alone
--   o:OWNER      its counts; it has the last BLOCK tokens up to token
--   until        its deadline; without the field it is TTL after token, which is the time of its grant
--   crowd        'QUEUED', how many wait; followed by ' +' if a field below is in use, except w: and v:. Without crowd
--                nobody waits, and leftovers of the fields below are ignored
--   w:NONCE      a waiter: 'DEADLINE TOLD PLACE COUNTS IDENTITY'; TOLD is when the lock ends, as its client was told.
--                PLACE 0: it waits on a condition, and TOLD is since when
--   v:OWNER      the nonces that a named owner has in the queue, each followed by a space
--   several      several sessions hold: 'SINCE w OWNER' if that owner excludes others, 'SINCE r', or 'SINCE r USED' if
--                they use permits. A grant whose first token is below SINCE is over, and not counted in USED
--   s:NONCE      one of several sessions: 'LOW OP WRITES READS DEADLINE IDENTITY'; LOW is the first token of its grant
--   g:OWNER      an owner's grant while several sessions hold: 'LOW HIGH SESSIONS WRITING UNTIL': its tokens, how many
--                sessions it has, how many of them write, their latest deadline; then ' WEIGHT' if it uses permits
--   b:OWNER      an owner's part of a grant that branches have entered: 'LOW PARENT SESSIONS WRITING BELOW WRITERS':
--                the grant's first token; the length of the name of the ancestor through whose hold it entered (0: it
--                began the grant); its sessions, and how many of them write; the sessions that entered through its
--                hold, and how many of them write. SESSIONS and WRITING of g: count all of these
--   nests        there is a b: field: '1', or '2' while sessions must be told that the hold they entered has ended
--   u:ANCESTOR   'PLACE.NONCE' of the waiters whose owner descends from it, in order, each followed by a space
--   branches     there is a u: field: '1', then owners whose branches may be let in now, each after the byte 255
--   rests        'UNTIL NONCE OP': nobody can take the name until then, after a grant of NONCE by its request OP.
--                NONCE is '-' once another call has joined that grant
--   looks        nonces in the queue whose owner holds now: they must still be told to ask again
--   c:CONDITION  'FIRST LAST': the nonces that have waited on it longest and shortest
--   i:NONCE      it waits on a condition, or was signalled and has not released since: 'PLACE BEFORE AFTER CONDITION':
--                the place that the signal gave it, or 0 and its neighbours in the chain ('-' for none)
--   conds        'COUNT NONCE NUMBER OWED': number of i: fields; the nonce that signalled last ('-' for none), and that
--                signal's number; nonces that have gone with a signal which others must get, each followed by a space
--   e:NONCE      an ended nonce, which must not be granted: until when a copy of its request may arrive
--   ended        'FIRST NEXT DUE': the numbers of the ended nonces, and when the first may be forgotten
--   n:NUMBER     an ended nonce
-- One more field is removed together with crowd, but adds no ' +' to it:
--   unseen       until when PUBSUB is not believed, because it did not show a client that hears
-- Users' strings stand behind a prefix or at the end of a record, so that they are never taken for anything else.
-- The layout of all this and of the messages has a number, which lua.go has as well. In every layout kind ends in it.
-- And in every layout nobody holds or waits for a lock whose hash has neither holder nor crowd.
local layout = '.1'
local fair = 'fair' .. layout

local function identity_parts(identity)
  local nonce, client, weight, permits, owner = string.match(identity, '^(%S+) (%S+) (%d*)/?(%d*) ?o:(.*)$')
  return nonce, client, owner, weight, permits
end

-- Returns nothing for counts with a rest. The short ways of the usual cases do not know rests.
local function counts_parts(counts)
  return string.match(counts, '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
end

-- Returns deadline, told, place, counts (all five as one text) and identity of a w: field, as texts; nil for ''.
local function waiter_parts(packed)
  return string.match(packed, '^(%d+) (%d+) (%d+) (%d+ %d+ %d+ %S+ %d+) (.*)$')
end

local function write_waiter(deadline, told, place, counts, identity)
  return deadline .. ' ' .. told .. ' ' .. text(place) .. ' ' .. counts .. ' ' .. identity
end

local function write_counts(op, writes, reads, ttl, tokens)
  return op .. ' ' .. writes .. ' ' .. reads .. ' ' .. ttl .. ' ' .. tokens
end

-- Reads an i: field: the place that a signal gave, or 0; the neighbours in the chain; the condition. Nothing for ''.
local function link_parts(packed)
  return string.match(packed, '^(%d+) (%S+) (%S+) (.*)$')
end

local function link(nonce, place, before, after, condition)
  redis.call('HSET', KEYS[1], 'i:' .. nonce, text(place) .. ' ' .. before .. ' ' .. after .. ' ' .. condition)
end

local function read_conds(packed)
  local count, signaller, number, owed = string.match(packed, '^(%d+) (%S+) (%d+) (.*)$')
  return { count = tonumber(count), signaller = signaller, number = tonumber(number), owed = owed }
end

local function write_conds(c)
  return c.count .. ' ' .. c.signaller .. ' ' .. c.number .. ' ' .. c.owed
end

local function is_named(owner) -- by a user: generated names begin with '~'
  return string.sub(owner, 1, 1) ~= '~'
end

-- Returns the owner and its ancestors, nearest first. A branch's name is its parent's, '~.', and 11 letters of base64.
local function lineage(owner)
  local names = { owner }
  local at = is_named(owner) and string.find(owner, '~.', 1, true)
  while at do
    table.insert(names, 2, string.sub(owner, 1, at - 1))
    at = string.find(owner, '~.', at + 2, true)
  end
  return names
end

-- Returns the deadline of a session that holds alone. until_ms (false if missing) and token are fields of the hash.
local function deadline_alone(until_ms, token, ttl)
  return tonumber(until_ms) or math.floor(token / 1000) + ttl
end

local function read_rests(packed)
  local until_ms, nonce, op = string.match(packed or '0', '^(%d+) ?(%S*) ?(%d*)$')
  return tonumber(until_ms), nonce, tonumber(op) or 0
end

local function write_rests(until_ms, nonce, op)
  return until_ms .. ' ' .. nonce .. ' ' .. op
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

-- Returns the two texts of a request as one table.
local function read_request(counts, identity)
  local request = read_identity(identity)
  local op, writes, reads, ttl, from, rest, block = string.match(counts, '^(%d+) (%d+) (%d+) (%d+)([+%%]?)(%d*) (%d+)$')
  request.counts, request.op, request.writes, request.reads = counts, tonumber(op), tonumber(writes), tonumber(reads)
  request.rest, request.even = tonumber(rest), from == '%'
  request.ttl, request.block, request.mode = tonumber(ttl), tonumber(block), writes ~= '0' and 'w' or request.weight > 0 and 's' or 'r'
  return request
end

local function read_waiter(packed)
  local deadline, told, place, counts, identity = waiter_parts(packed)
  local waiter = read_request(counts, identity)
  waiter.deadline, waiter.told, waiter.place = tonumber(deadline), tonumber(told), tonumber(place)
  return waiter
end

local function stored_waiter(nonce)
  local packed = redis.call('HGET', KEYS[1], 'w:' .. nonce)
  return packed and read_waiter(packed)
end

local function read_session(packed)
  local low, op, writes, reads, deadline, identity = string.match(packed, '^(%d+) (%d+) (%d+) (%d+) (%d+) (.*)$')
  local session = read_identity(identity)
  session.low, session.op, session.deadline = tonumber(low), tonumber(op), tonumber(deadline)
  session.writes, session.reads = tonumber(writes), tonumber(reads)
  return session
end

local function stored_session(nonce)
  local packed = redis.call('HGET', KEYS[1], 's:' .. nonce)
  return packed and read_session(packed)
end

local function write_session(s)
  return text(s.low) .. ' ' .. s.op .. ' ' .. s.writes .. ' ' .. s.reads .. ' ' .. s.deadline .. ' ' .. s.identity
end

local function read_grant(packed, owner)
  local low, high, sessions, writing, deadline, weight = string.match(packed, '^(%d+) (%d+) (%d+) (%d+) (%d+) ?(%d*)$')
  return {
    owner = owner, low = tonumber(low), high = tonumber(high), sessions = tonumber(sessions), writing = tonumber(writing), deadline = tonumber(deadline),
    weight = tonumber(weight) or 0,
  }
end

local function write_grant(grant)
  return text(grant.low) .. ' ' .. text(grant.high) .. ' ' .. grant.sessions .. ' ' .. grant.writing .. ' ' .. grant.deadline
    .. (grant.weight > 0 and ' ' .. grant.weight or '')
end

-- Returns an owner's part of a grant that branches have entered, which is the field b:OWNER, or nil.
local function stored_part(owner)
  local packed = redis.call('HGET', KEYS[1], 'b:' .. owner) or ''
  local low, parent, sessions, writing, below, writers = string.match(packed, '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
  return low and {
    owner = owner, low = tonumber(low), parent = tonumber(parent), sessions = tonumber(sessions), writing = tonumber(writing),
    below = tonumber(below), writers = tonumber(writers),
  }
end

local function write_part(p)
  return text(p.low) .. ' ' .. p.parent .. ' ' .. p.sessions .. ' ' .. p.writing .. ' ' .. p.below .. ' ' .. p.writers
end
