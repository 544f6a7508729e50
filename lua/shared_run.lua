-- A run: those who stand at the front of a fair lock's queue one behind the other and are
-- of one client, are anonymous and write. Who is granted it with several tokens is told who of its own
-- client stands right behind it: that client passes the lock on to them in this order,
-- and names them in the release. They are in the queue until then, and lose nothing.

-- Those of one run, at most.
local longest_run = 15

-- Who of that client stands at the front, each with a space before; packed is the record
-- of the first of them, whoever's it is.
local function run_of(client, packed)
  local run, first = '', 1
  local nonces, entries = nil, { packed }
  while true do
    local _, _, _, counts, identity = waiter_parts(entries[first] or '')
    local _, writes = counts_parts(counts or '')
    local nonce, of, owner = identity_parts(identity or '')
    if of ~= client or writes ~= '1' or is_named(owner) then
      return run
    end
    run = run .. ' ' .. nonce
    if not nonces then
      nonces = redis.call('ZRANGEBYSCORE', KEYS[2], '(0', '+inf', 'LIMIT', 0, longest_run)
      local keys = {}
      for i, other in ipairs(nonces) do
        keys[i] = 'w:' .. other
      end
      entries = redis.call('HMGET', KEYS[1], unpack(keys))
    end
    first = first + 1
  end
end
