-- Messages to the inboxes of clients. Each script sets inbox_prefix before it sends any.

local inbox_prefix

-- Returns the inbox of a client, and whether that is a sharded channel. A client whose ID begins with 's.' has one
-- sharded channel for each hash tag, in the same slot as the lock. Any other has one channel for all locks.
local function channel(client)
  if string.sub(client, 1, 2) == 's.' then
    return inbox_prefix .. (string.match(KEYS[1], '{[^}]+}') or '') .. client, true
  end
  return inbox_prefix .. client, false
end

-- Sends a message to a client. If that is refused, the script goes on: the client finds out with its next heartbeat or
-- renewal, or by the end of a lease.
local function tell(client, message)
  if client == '-' then
    return -- a ticket has no inbox
  end
  local name, sharded = channel(client)
  return sharded and redis.pcall('SPUBLISH', name, message) or redis.pcall('PUBLISH', name, message)
end
