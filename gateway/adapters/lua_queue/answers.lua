-- Where a ticket stands (domain/queue/prediction).
local turns, seen = {}, {}

local function wait_ms(ahead)
  if ahead <= 0 then
    return 0
  end
  if pool[P_SPEED_COST] <= 0 or pool[P_RUNNING_COST] <= 0 then
    return -1
  end
  return floor(ahead * floor(pool[P_SPEED_COST_MS] / pool[P_SPEED_COST]) / pool[P_RUNNING_COST])
end

local function place(newcomers, others, counters, level)
  for _, name in ipairs(newcomers) do
    others[#others + 1], counters[#counters + 1] = name, level
  end
end

-- Who waits in a band, those of the lowest counters: names, counters, tokens and weights.
local function turns_of(band)
  local found = turns[band]
  if not found then
    local others, counters, level = {}, {}, news[N_LEVEL + OF_BAND_N * band]
    local newcomers, is_new = {}, nil
    if news[N_NEW + OF_BAND_N * band] > 0 then
      is_new = {}
      newcomers = call('ZRANGE', KEYS[16 + band], 0, TENANTS_AHEAD)
      newcomers[newcomers[#newcomers] == AT and #newcomers or #newcomers + 1] = fresh[band]
      for _, name in ipairs(newcomers) do
        is_new[name] = true
      end
    end
    local last = TENANTS_AHEAD + #newcomers
    local pairs_of = call('ZRANGE', turns_keys[band], 0, last, 'WITHSCORES')
    for at = 1, #pairs_of - 1, 2 do
      local name, counter = pairs_of[at], tonumber(pairs_of[at + 1])
      if name ~= AT and not (is_new and is_new[name]) then
        if #newcomers > 0 and counter >= level then
          place(newcomers, others, counters, level)
          newcomers = {}
        end
        others[#others + 1], counters[#counters + 1] = name, counter
      end
    end
    place(newcomers, others, counters, level)
    found = {others, counters}
    turns[band] = found
  end
  return found
end

local function read_backlogs(found, band)
  local tokens, weights = {}, {}
  local records = call('HMGET', TENANTS, unpack(found[1]))
  local from = 8 * (T_TOKENS + OF_BAND_T * band) - 7
  for at, name in ipairs(found[1]) do
    local tenant = tenants[name]
    if tenant then
      tokens[at] = tenant[T_TOKENS + OF_BAND_T * band]
      weights[at] = tenant[T_WEIGHT + OF_BAND_T * band]
    else
      tokens[at], weights[at] = sunpack('<dd', records[at], from)
    end
  end
  found[3], found[4] = tokens, weights
end

-- A TENANT to look at only: who stands behind it changes nothing of it.
local function look_at(name)
  local tenant = tenants[name] or seen[name]
  if not tenant then
    tenant = tenant_from(call('HGET', TENANTS, name))
    seen[name] = tenant
  end
  return tenant
end

local function queued(ticket)
  local name, band = ticket[K_TENANT], order_band(ticket)
  local tenant, member = look_at(name), order_member(ticket)
  local own_ahead = call('ZLEXCOUNT', order_keys[band], '[' .. name .. '\0', '(' .. member)
  local ahead = floor(tenant[T_TOKENS + OF_BAND_T * band] * own_ahead / tenant[T_COUNT + OF_BAND_T * band])
  local reached = counter_of(tenant, band) + floor(ahead * UNITS / ticket[K_WEIGHT])
  local found = turns_of(band)
  local others, counters = found[1], found[2]
  if reached > counters[1] then
    if not found[3] then
      read_backlogs(found, band)
    end
    local tokens, weights, looked_at = found[3], found[4], 0
    for at = 1, #others do
      local below = reached - counters[at]
      if below <= 0 or looked_at == TENANTS_AHEAD then
        break
      end
      if others[at] ~= name then
        looked_at = looked_at + 1
        local granted = floor(below * weights[at] / UNITS)
        ahead = ahead + (granted < tokens[at] and granted or tokens[at])
      end
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

-- Renew as a step of its own.
local function renewed_after(id)
  reap()
  dispatch()
  return renewed(load_ticket(id))
end
