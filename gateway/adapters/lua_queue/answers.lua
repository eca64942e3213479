-- Where a ticket stands (domain/queue/prediction).
local turns, backlogs = {}, {}

local function wait_ms(ahead)
  if ahead <= 0 then
    return 0
  end
  if pool[P_SPEED_COST] <= 0 or pool[P_RUNNING_COST] <= 0 then
    return -1
  end
  return floor(ahead * floor(pool[P_SPEED_COST_MS] / pool[P_SPEED_COST]) / pool[P_RUNNING_COST])
end

-- Who waits in a band, those of the lowest counters: names and counters in turn; what they have
-- waiting is read when it is asked for, and kept in `backlogs`.
local function turns_of(band)
  if not turns[band] then
    turns[band] = call('ZRANGE', turns_keys[band], 0, TENANTS_AHEAD, 'WITHSCORES')
    backlogs[band] = {}
  end
  return turns[band], backlogs[band]
end

local function backlog_of(name)
  return tenants[name] or unpack_of(call('HGET', TENANTS, name))
end

local function queued(ticket)
  local name, band = ticket[K_TENANT], order_band(ticket)
  local tenant, member = tenant_of(name), order_member(ticket)
  local own_ahead = call('ZLEXCOUNT', order_keys[band], '[' .. name .. '\0', '(' .. member)
  local ahead = floor(tenant[T_TOKENS + OF_BAND_T * band] * own_ahead / tenant[T_COUNT + OF_BAND_T * band])
  local reached = tenant[T_COUNTER + OF_BAND_T * band] + floor(ahead * UNITS / ticket[K_WEIGHT])
  local names, known = turns_of(band)
  local looked_at = 0
  for at = 1, #names - 1, 2 do
    local other = names[at]
    local below = other ~= AT and reached - tonumber(names[at + 1]) or 0
    if below <= 0 or looked_at == TENANTS_AHEAD then
      break
    end
    if other ~= name then
      looked_at = looked_at + 1
      known[at] = known[at] or backlog_of(other)
      local tokens, weight = known[at][T_TOKENS + OF_BAND_T * band], known[at][T_WEIGHT + OF_BAND_T * band]
      ahead = ahead + math.min(tokens, floor(below * weight / UNITS))
    end
  end
  if band == 1 then
    ahead = ahead + pool[P_TOKENS]
  end
  return {1, own_ahead, ahead, wait_ms(ahead)}
end

-- Its gateway lives and wants it.
local function renewed(ticket)
  if not ticket then
    return {6}
  end
  local state = ticket[K_STATE]
  if state == S_GRANTED then
    return {0, ticket[K_WORKER]}
  end
  if state < WAITING_STATE then
    call('ZADD', DUE, now + ttl_ms, ticket[K_ID])
    return state == S_TAKEN_BACK and {5} or {0, ticket[K_WORKER]}
  end
  call('ZADD', DUE, math.min(now + ttl_ms, ticket[K_DEADLINE]), ticket[K_ID])
  return state == PARKED_STATE and {4} or queued(ticket)
end

-- Renew and take up, as steps of their own.
local function renewed_after(id)
  reap()
  dispatch()
  return renewed(load_ticket(id))
end

local function taken_up(id)
  reap()
  local place = load_ticket(id)
  local holds = place and place[K_STATE] < WAITING_STATE
  if holds then
    call('ZADD', DUE, now + ttl_ms, id)
    if place[K_STATE] == S_GRANTED then
      place[K_STATE] = S_HELD
      save_ticket(place)
    end
  end
  dispatch()
  if not holds then
    return {6}
  end
  place = load_ticket(id)
  return place[K_STATE] == S_TAKEN_BACK and {5} or {0, place[K_WORKER]}
end
