-- Settle ends every script that changes a lock: whoever can hold now, holds.
-- It is bounded: what it leaves over is reported, and the caller asks again.

-- A step takes the server about 12 us: nobody else waits for more than some ms.
local budget = 250

-- Readers that one call lets in at most.
local admit = 256

-- Nonces whose requests this very script answers: their reply is their message.
local asking = {}

-- Hands the lock to a waiter for the rest of its entry's lease: the waiter may
-- be frozen or gone, and then no more than that lease is spent on it. The
-- message is the grant; op names the request whose sending time the lease
-- counts from. Nobody subscribed: the entry goes, its client keeps the ticket, and
-- asks again should it hear after all, over a replica.
local function grant_waiter(nonce, waiter)
  drop_waiter(nonce, waiter)
  if not asking[nonce] and deaf(waiter.client) then
    tell(waiter.client, 'look ' .. nonce)
    return
  end
  local session = {
    client = waiter.client, nonce = nonce, op = waiter.op, writes = 1, reads = 0, deadline = waiter.deadline,
  }
  local grant
  if waiter.mode == 'r' then
    session.writes, session.reads = 0, 1
    local packed = waiter.named and redis.call('HGET', KEYS[1], 'o:' .. waiter.owner)
    grant = packed and unpack_grant(packed)
  end
  if not grant or #grant.sessions == 0 then
    local low, high = issue(state.token, waiter.block)
    state.token = high
    grant = { mode = waiter.mode, low = low, high = high, sessions = {} }
  end
  if asking[nonce] then
    asking[nonce] = { grant.low, grant.high, waiter.deadline }
  else
    tell(waiter.client, 'grant ' .. nonce .. ' ' .. waiter.op .. ' ' .. text(grant.low) .. ' ' .. text(grant.high))
  end
  grant.sessions[#grant.sessions + 1] = session
  if waiter.mode == 'w' then
    store_grant(waiter.owner, grant, 'token', text(state.token))
  else
    put_reader(waiter.owner, grant, session, 'token', text(state.token))
  end
  if waiter.named then
    -- The same owner's other requests re-enter: they are woken, not kept waiting for themselves.
    for other in string.gmatch(redis.call('HGET', KEYS[1], 'v:' .. waiter.owner) or '', '%S+') do
      local packed = redis.call('HGET', KEYS[1], 'w:' .. other)
      if packed then
        tell(unpack_waiter(packed).client, 'look ' .. other)
      end
    end
  end
end

-- The head sleeps until the deadline it was told. Where the lock now ends
-- sooner than that (a shorter lease took over), it must be told again.
local function look()
  local nonce, packed = head()
  local deadline = blocked()
  if not packed or asking[nonce] or not deadline then
    return
  end
  local waiter = unpack_waiter(packed)
  if deadline < waiter.told then
    waiter.told = deadline
    update_waiter(nonce, waiter)
    tell(waiter.client, 'look ' .. nonce)
  end
end

-- Returns 1 when it ran out of budget, else 0.
local function settle()
  if state.owner and state.deadline <= now then
    drop_grant()
  end
  if state.shared then
    budget = budget - sweep_readers(budget)
  end
  while not state.owner and state.queued > 0 do
    if budget <= 0 or admit <= 0 then
      return 1
    end
    local nonce, packed = head()
    if not nonce then
      state.queued = 0
    elseif not packed then
      -- A queue that outlived its hash: the waiter's next heartbeat puts it back.
      drop_waiter(nonce)
      budget = budget - 1
    else
      local waiter = unpack_waiter(packed)
      if waiter.deadline <= now then
        local dropped = sweep(budget)
        if dropped == 0 then
          drop_waiter(nonce, waiter)
          dropped = 1
        end
        budget = budget - dropped
      elseif waiter.mode == 'w' and blocked() then
        break
      else
        grant_waiter(nonce, waiter)
        budget = budget - 1
        admit = waiter.mode == 'r' and admit - 1 or admit
      end
    end
  end
  if state.queued > 0 then
    look()
  end
  return budget <= 0 and 1 or 0
end

-- Writes the queue's length back where it changed.
local function close()
  if state.queued ~= state.stored then
    redis.call('HSET', KEYS[1], 'queued', state.queued)
  end
end
