-- A run is the waiters at the front of a fair lock's queue, one behind another, that belong to one client, are
-- anonymous and write. A grant of several tokens names the run behind it. Its client passes the lock on to the run in
-- that order, without a command. The release names those that have had the lock. Until then the whole run stays in the
-- queue: if the client stops passing the lock on, Redis grants it to the next.

local longest_run = 15

-- Returns the nonces of the client's run, each after a space, or ''. packed is the record of the first waiter in the
-- queue, which may be another client's. The run ends before a waiter whose counts have a rest (see counts_parts).
local function run_of(client, packed)
  local run, entries = '', { packed }
  for i = 1, longest_run do
    local _, _, _, counts, identity = waiter_parts(entries[i] or '')
    local _, writes = counts_parts(counts or '')
    local nonce, of, owner = identity_parts(identity or '')
    if of ~= client or writes ~= '1' or is_named(owner) then
      break
    end
    run = run .. ' ' .. nonce
    if i == 1 then
      local keys = redis.call('ZRANGEBYSCORE', KEYS[2], '(0', '+inf', 'LIMIT', 0, longest_run)
      for n, other in ipairs(keys) do
        keys[n] = 'w:' .. other
      end
      entries = redis.call('HMGET', KEYS[1], unpack(keys))
    end
  end
  return run
end
