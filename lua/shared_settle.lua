-- Each script that may change who holds ends with settle: it grants the lock to all who can hold it now. Its work is
-- limited by budget and admit. If something is left, the reply says so and the client asks again.

-- How many readers, or users of a semaphore, one script lets in at most.
local admit = 256

-- Returns what nearest_hold finds for a branch. For other owners, which have no ancestors, returns nil or false.
local function above(request)
  return request.named and string.find(request.owner, '~.', 1, true) and nearest_hold(request.owner)
end

-- Returns whether an earlier grant still counts an owner that does not hold by it any more. Either sessions are left
-- that entered through the owner's ended hold, or the owner itself entered through a hold that has ended. Until they
-- are gone the owner must not begin another hold: it has only one record b:, and would be in two grants.
local function remains(owner)
  local part = state.nests and stored_part(owner)
  return part and unless_over(grant_at(owner, part.low)) and (part.sessions == 0 or is_orphan({ owner = owner, low = part.low, writes = 0 }))
end

-- Returns whether a request may hold beside those who hold now. Only usual cases, re-entries and move do not ask this.
-- A branch may hold if every holder is its ancestor, or reads as the branch does; so may an owner that holds already.
-- A holder that is no ancestor must have entered through the nearest ancestor's hold, so it is enough to look there.
local function fits(request)
  if request.named and remains(request.owner) then
    return false
  end
  local by = above(request)
  if by then
    local joins = by.owner == request.owner or by.below == 0
    return request.mode == 'r' and by.writers == 0 or joins and (request.mode ~= 'w' or by.mode == 'w')
  end
  if request.mode == 's' then
    return used() + request.weight <= request.permits
  end
  local in_the_way = request.mode == 'r' and writer or blocked
  return not in_the_way()
end

-- Returns the earliest time at which the request may fit because a lease or a rest ends, or nil if nothing is in its
-- way. For a semaphore or a branch it is the end of the first lease, though that may not be enough.
local function may_fit_at(request)
  return (request.mode == 's' or above(request)) and shortest() or blocked()
end

-- Requests that this script answers, by nonce: true, or the waiter once granted. The reply, not a message, says so.
local asking = {}

-- Tells waiters whose owner holds now (state.looks) to ask again. The budget may leave some to the next script.
local function look_again()
  local from = 1
  for nonce, after in string.gmatch(state.looks, '(%S+) ()') do
    if budget <= 0 then
      break
    end
    budget = budget - 1
    from = after
    local waiter = stored_waiter(nonce)
    if waiter then
      tell(waiter.client, 'look ' .. nonce)
    end
  end
  state.looks = string.sub(state.looks, from)
  if state.looks == '' then
    redis.call('HDEL', KEYS[1], 'looks')
  else
    redis.call('HSET', KEYS[1], 'looks', state.looks)
  end
end

-- Grants the lock to a waiter, for the rest of its entry's lease. If the waiter is frozen or gone, it blocks the lock
-- for no longer than that. The message is the grant; its op names the request from whose sending the client counts the
-- lease. If nobody is subscribed, the entry is removed instead, and the client is told to ask again. A client that
-- hears after all, for example over a replica, then does so under its old place.
local function grant_waiter(nonce, waiter)
  drop_waiter(nonce, waiter)
  -- Ask whether the client hears before the grant is sent. The count that PUBLISH returns comes too late: a subscriber
  -- at another node or a replica is not counted but hears, so a grant that was sent must be stored. While it is noted
  -- that the server hides subscribers, every client counts as hearing.
  if not asking[nonce] and hidden(waiter.client) and tonumber(redis.call('HGET', KEYS[1], 'unseen') or 0) <= now then
    owe(nonce)
    tell(waiter.client, 'look ' .. nonce)
    return
  end
  local grant = waiter.named and nearest_hold(waiter.owner)
  put(waiter, grant)
  if asking[nonce] then
    asking[nonce] = waiter
  else
    local packed = state.kind == fair and not waiter.named and waiter.high > waiter.low and select(2, head())
    local run = packed and run_of(waiter.client, packed) or ''
    local message = 'grant ' .. nonce .. ' ' .. waiter.op .. ' ' .. text(waiter.low) .. ' ' .. text(waiter.high)
    granted[#granted + 1] = { client = waiter.client, owner = waiter.owner, message = message, run = run }
    granted[nonce] = true
  end
  local begins = waiter.named and not (grant and grant.owner == waiter.owner)
  local others = begins and redis.call('HGET', KEYS[1], 'v:' .. waiter.owner)
  if others then
    -- The owner's other requests in the queue can re-enter now, so they must be told to ask again: otherwise the owner
    -- would wait for itself. Later requests of the owner join at once.
    state.looks = state.looks .. others
    redis.call('HSET', KEYS[1], 'looks', state.looks)
  end
end

-- Lets in the branches that wait to enter through an owner's hold, in order. Skips those with a nearer ancestor that
-- holds. Returns whether one must wait on or the budget ran out, and whether any has left the list.
local function admit_branches(owner)
  local list, moved = redis.call('HGET', KEYS[1], 'u:' .. owner) or '', false
  charge(list)
  for nonce in string.gmatch(list, '%d+%.(%S+) ') do
    if budget <= 0 then
      return true, moved
    end
    local waiter = stored_waiter(nonce)
    budget = budget - 1 - math.floor(waiter and #waiter.owner / 100 or 0) -- looks up each ancestor: long names cost
    local by = waiter and nearest_hold(waiter.owner)
    if waiter and waiter.deadline <= now then
      drop_gone(nonce, waiter)
      moved = true
    elseif by and by.owner == owner then
      if by.mode == 'r' and waiter.mode == 'w' then
        -- It would wait for its own ancestor. acquire refuses it when it asks again.
        tell(waiter.client, 'look ' .. nonce)
      elseif fits(waiter) then
        grant_waiter(nonce, waiter)
        moved = true
      else
        return true, moved
      end
    end
  end
  return false, moved
end

-- Lets in branches of the owners in state.stirred, whose holds have changed. If the budget runs out, the next script
-- goes on (see note_branches), unless nobody could leave a list: it would get no further.
local function admit_stirred()
  local owner = next(state.stirred)
  while owner and budget > 0 do
    state.stirred[owner] = nil
    local by = nearest_hold(owner)
    if by and by.owner == owner then
      local waits, moved = admit_branches(owner)
      state.stirred[owner] = waits and moved and budget <= 0 or nil
    end
    owner = next(state.stirred)
  end
end

-- Tells sessions that the hold through which they entered has ended. One that misses the message finds out at its next
-- renewal. A ticket is dropped instead, as no client trusts it. Returns whether a ticket was dropped.
local function tell_orphans()
  local dropped, ousts = false, state.ousts
  state.ousts = false
  for _, member in ipairs(ousts and redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', '(' .. text(-far), 'LIMIT', 0, math.max(budget, 1)) or {}) do
    budget = budget - 1
    local session = stored_session(string.sub(member, 2))
    if session and is_orphan(session) then
      if session.client == '-' then
        drop(session)
        dropped = true
      else
        tell(session.client, 'ended ' .. session.nonce)
      end
    end
  end
  return dropped
end

-- Tells the first waiter to ask again if the lock now ends sooner than it was told. That is so if a holder with a
-- shorter lease took over. The waiter would sleep until the later time.
local function look()
  local nonce, packed = head()
  local waiter = packed and not asking[nonce] and read_waiter(packed)
  local deadline = waiter and may_fit_at(waiter)
  if deadline and deadline < waiter.told then
    waiter.told = deadline
    update_waiter(nonce, waiter)
    tell(waiter.client, 'look ' .. nonce)
  end
end

-- Grants the lock to waiters from the front of the queue as long as they fit. Returns 1 if budget or admit ran out.
local function admit_queue()
  while not writer() and state.queued > 0 do
    if budget <= 0 or admit <= 0 then
      return 1
    end
    local nonce, packed = head()
    if not nonce then
      sweep_expired()
    elseif not packed then
      -- The queue has outlived its hash: the waiter's record is gone. Its next heartbeat puts the waiter back.
      drop_waiter(nonce)
      budget = budget - 1
    else
      local waiter = read_waiter(packed)
      if waiter.deadline <= now then
        if sweep() == 0 then
          drop_gone(nonce, waiter)
          budget = budget - 1
        end
      elseif not fits(waiter) then
        break
      else
        grant_waiter(nonce, waiter)
        budget = budget - 1
        admit = waiter.mode == 'w' and admit or admit - 1
      end
    end
  end
end

-- Drops sessions past their deadline, and grants whatever can be granted. Returns 1 if something may be left, else 0.
local function settle()
  if state.alone and state.alone.deadline <= now then
    drop(state.alone)
  end
  sweep_sessions()
  repeat
    pass_signals()
    admit_stirred()
    if admit_queue() then
      return 1
    end
    -- A dead waiter in the queue may have had a signal. Another waiter gets the signal, and may be able to hold now.
  until not (tell_orphans() or next(state.stirred) or state.conds and state.conds.owed ~= '') or budget <= 0
  if state.queued > 0 then
    look()
  end
  if state.looks ~= '' then
    look_again()
  end
  return budget <= 0 and 1 or 0
end

-- Ends each script that may change who holds. Settles if settles is true, sends the messages of new grants, forgets
-- what is over, and stores in crowd whether anything unusual is left. With ended, the hash of a free lock that does not
-- rest lives for TokenKeep, or for ended ms if that is longer. Returns 1 if settle may have left something, else 0.
local function finish(settles, ended)
  local left = settles and settle() or 0
  for _, g in ipairs(granted) do
    -- The plus says that there are waiters besides those of the run.
    local wanted = wanting(g.owner) > select(2, string.gsub(g.run, ' ', ''))
    tell(g.client, g.message .. (wanted and ' +' or '') .. g.run)
  end
  if state.due > 0 and state.due <= now then
    forget_ended()
  end
  settle_several()
  note_branches()
  if state.rester and state.rests == 0 then
    redis.call('HDEL', KEYS[1], 'rests')
    state.rester = nil
  end
  local more = (state.several or state.ended or state.rester or state.looks ~= '' or state.conds or state.branches) and ' +' or ''
  local crowd = (state.queued > 0 or more ~= '') and state.queued .. more or false
  if crowd and crowd ~= state.crowd then
    redis.call('HSET', KEYS[1], 'crowd', crowd)
  elseif not crowd and state.crowd then
    redis.call('HDEL', KEYS[1], 'crowd', 'unseen')
  end
  if ended and state.queued == 0 and not state.conds and not blocked() then
    redis.call('PEXPIRE', KEYS[1], math.max(life(0, state.keep), ended))
  end
  return left
end
