-- States what sessions hold: their counts and their leases. Renewals, nested locks and nested unlocks are all this one
-- statement. A larger op overrides a smaller one, so a copy that arrives again or out of order changes nothing. For a
-- session that holds alone one key is enough, so this works in a slot that migrates. Release and downgrade give up the
-- last hold for writing. A renewal that overtakes a downgrade does too, and settles nothing.
-- KEYS[1...] hash the state of each session's lock
-- KEYS[2] zset for one session, its lock's queue; may be left out
-- ARGV[1] ttl ms from now that the leases last at least; 0: leave them as they are
-- ARGV[2] life ms, ttl plus how long a hash outlives the last deadline
-- ARGV[3...] five for each session: identity ('NONCE CLIENT o:OWNER'), 'o:OWNER', op (number of this statement, larger
--   than any before it), writes, reads (how many holds the session has from now on)
-- RETURNS now, and for each session ms that are left of its lease, 0 (not held, any more), or -5 (it may be one of
--   several, or in a call for many a command failed for it: state it alone, with the queue). If others wait for the end
--   of a session: how many, and before that, in a call for many sessions, the session's number.
--   For one session and a ttl of 0, unless the queue was needed, nothing but 1 (held), 0 or -5
local clock = ARGV[1] ~= '0' and redis.call('TIME')
local now = clock and clock[1] * 1000 + (clock[2] - clock[2] % 1000) / 1000 or 0

-- Carries out the statement of one session that holds alone. Returns what is left of its lease, 0 or -5 as above, or
-- the error of a command that was refused; and the field crowd.
local function state_alone(i, identity, field, op, writes, reads)
  local record = clock and redis.pcall('HMGET', KEYS[i], 'holder', field, 'until', 'token', 'crowd') or redis.pcall('HMGET', KEYS[i], 'holder', field)
  if record[1] ~= identity then
    local crowd = not record.err and redis.call('HGET', KEYS[i], 'crowd')
    return record.err and record or crowd and string.find(crowd, '+', 1, true) and -5 or 0
  end
  local last, wrote, terms, ttl = string.match(record[2], '^(%d+) (%d+) %d+( (%d+) %d+)$')
  local ends = clock and tonumber(record[3] or math.floor(record[4] / 1000) + ttl)
  if ends and ends <= now then
    return 0
  end
  -- An older statement changes nothing. Nor does one for writing whose session reads: a downgrade has overtaken it.
  if op + 0 <= last + 0 or wrote == '0' and writes ~= '0' then
    return ends and ends - now or 1, record[5]
  end
  local counts, stored = op .. ' ' .. writes .. ' ' .. reads .. terms, nil
  if not ends then
    stored = redis.pcall('HSET', KEYS[i], field, counts)
    if type(stored) == 'number' then
      return 1
    end
  end
  -- PEXPIRE first: Redis allows it when it is out of memory, and then allows what follows.
  stored = redis.pcall('PEXPIRE', KEYS[i], ARGV[2], 'GT')
  local later = ends and math.max(ends, now + ARGV[1])
  if type(stored) == 'number' and later then
    stored = redis.pcall('HSET', KEYS[i], field, counts, 'until', later)
  elseif type(stored) == 'number' then
    stored = redis.pcall('HSET', KEYS[i], field, counts)
  end
  return type(stored) == 'number' and (later and later - now or 1) or stored, record[5]
end

-- Adds to a reply how many wait, unless nobody does. number is the session's, in a call for many.
local function add_waiting(reply, crowd, number)
  local waiting = tonumber(string.match(crowd or '0', '^%d+'))
  if waiting > 0 then
    reply[#reply + 1] = number
    reply[#reply + 1] = waiting
  end
end

local sessions = (#ARGV - 2) / 5
if sessions > 1 then
  local reply, crowds = { now }, {}
  for i = 1, sessions do
    local at = i * 5 - 2
    local left, crowd = state_alone(i, ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4])
    reply[i + 1], crowds[i] = type(left) == 'number' and left or -5, crowd
  end
  for i = 1, sessions do
    add_waiting(reply, crowds[i], i)
  end
  return reply
end
local left, waiting = state_alone(1, ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7])
if left ~= -5 or not KEYS[2] then
  local reply = { now, left }
  add_waiting(reply, left ~= 0 and waiting)
  return clock and type(left) == 'number' and reply or left
end
local fields = redis.pcall('HMGET', KEYS[1], 'holder', 'crowd', 'token', 'kind')
clock = clock or redis.call('TIME')
-- uses: clock record state sessions
local ttl, op, writes, reads = tonumber(ARGV[1]), tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
touch(ttl, ARGV[2] - ttl)
sweep_sessions()
local stated = read_identity(ARGV[3])
local session = find_live(stated.nonce, stated.client, stated.owner)
if not session then
  return { now, 0 }
end
if op > session.op and (writer() == session.owner or session.writes > 0 or writes == 0) then
  change(session, op, writes, reads, now + ttl)
  note_branches()
end
local reply = { now, session.deadline - now }
add_waiting(reply, text(wanting(session.owner)))
return reply
