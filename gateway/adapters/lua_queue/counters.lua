-- Virtual token counters (domain/queue/fairness.Counters). A tenant is active in a band while
-- something of it waits or runs there; its TENANT holds its counter meanwhile, of a newcomer what it
-- was lifted to when it came.
local function is_active(tenant, t)
  return tenant[T_COUNT + t] + tenant[T_RUNNING + t] > 0
end

-- What a tenant that begins to wait is lifted to.
local function lowest(band)
  local first, n = call('ZRANGE', turns_keys[band], 0, 0, 'WITHSCORES'), OF_BAND_N * band
  if first[1] == AT then
    return pool[P_DEPARTED + OF_BAND_P * band]
  end
  local counter = tonumber(first[2])
  return news[N_NEW + n] > 0 and math.min(counter, news[N_LEVEL + n]) or counter
end

-- Where it stands.
local function counter_of(tenant, band)
  local counter, n = tenant[T_COUNTER + OF_BAND_T * band], OF_BAND_N * band
  if tenant[T_OWN + band] and news[N_NEW + n] > 0 then
    return math.min(counter, news[N_LEVEL + n])
  end
  return counter
end

-- The least that those that wait may turn out to have been served.
local function least_owed(band)
  return lowest(band) - news[N_EXPECTED + OF_BAND_N * band]
end

local function forget(band)
  local idle = P_IDLE + OF_BAND_P * band
  if pool[idle] > 0 then
    local below = format('(%.0f', least_owed(band))
    pool[idle] = pool[idle] - call('ZREMRANGEBYSCORE', idle_keys[band], '-inf', below)
  end
end

-- The counter of one that is not active.
local function remembered(name, band)
  local idle = P_IDLE + OF_BAND_P * band
  local counter = pool[idle] > 0 and call('ZSCORE', idle_keys[band], name)
  if not counter then
    return 0
  end
  pool[idle] = pool[idle] - call('ZREM', idle_keys[band], name)
  return tonumber(counter)
end

-- It runs from now on, if it did not wait or run before; before its TENANT says so.
local function activate(name, band)
  local tenant, t = tenant_of(name), OF_BAND_T * band
  if not is_active(tenant, t) then
    tenant[T_COUNTER + t] = math.max(remembered(name, band), lowest(band))
  end
end

local function no_newcomer(name, band)
  local n, gone = OF_BAND_N * band, 1
  tenant_of(name)[T_OWN + band] = nil
  if fresh[band] == name then
    fresh[band] = nil
  else
    gone = call('ZREM', new_keys[band], name)
  end
  news[N_NEW + n] = news[N_NEW + n] - gone
end

-- It begins to wait; before its TENANT says so. `came_back`: a place of it was taken back.
local function begin_to_wait(name, band, came_back)
  local tenant, t, n = tenant_of(name), OF_BAND_T * band, OF_BAND_N * band
  local was_active = is_active(tenant, t)
  if not (came_back and was_active) then
    local own = was_active and tenant[T_COUNTER + t] or remembered(name, band)
    local least = lowest(band)
    tenant[T_COUNTER + t] = math.max(own, least)
    if own < least then
      tenant[T_OWN + band], fresh[band] = own, name
      news[N_LEVEL + n] = news[N_NEW + n] > 0 and math.min(least, news[N_LEVEL + n]) or least
      news[N_NEW + n], news[N_TURN + n] = news[N_NEW + n] + 1, news[N_TURN + n] + 1
    end
  end
  call('ZADD', turns_keys[band], tenant[T_COUNTER + t], name)
  forget(band)
end

-- Once its TENANT says that nothing of it waits.
local function waited(name, band)
  local tenant, t = tenant_of(name), OF_BAND_T * band
  if tenant[T_COUNT + t] == 0 then
    call('ZREM', turns_keys[band], name)
    pool[P_DEPARTED + OF_BAND_P * band] = counter_of(tenant, band)
    if tenant[T_OWN + band] then
      tenant[T_COUNTER + t] = tenant[T_OWN + band]
      no_newcomer(name, band)
    end
    forget(band)
  end
end

local function units(cost, weight)
  return floor(cost * UNITS / weight)
end

local function moved(name, tenant, band)
  local t = OF_BAND_T * band
  if tenant[T_COUNT + t] > 0 then
    call('ZADD', turns_keys[band], tenant[T_COUNTER + t], name)
  end
  forget(band)
end

local function charge(name, band, by)
  local tenant, t, n = tenant_of(name), OF_BAND_T * band, OF_BAND_N * band
  news[N_EXPECTED + n] = news[N_EXPECTED + n] + by
  local is_newcomer = tenant[T_OWN + band]
  if is_newcomer then
    tenant[T_COUNTER + t] = math.max(tenant[T_OWN + band], counter_of(tenant, band))
    no_newcomer(name, band)
  end
  tenant[T_COUNTER + t] = tenant[T_COUNTER + t] + by
  if by ~= 0 or is_newcomer then
    moved(name, tenant, band)
  end
end

-- Who was asked to give its place back has its turn again, before newcomers too.
local function correct(name, band, expected, actual, came_back)
  local tenant, t, n = tenant_of(name), OF_BAND_T * band, OF_BAND_N * band
  local by = actual - expected
  news[N_EXPECTED + n] = math.max(0, news[N_EXPECTED + n] - expected)
  if tenant[T_OWN + band] then
    tenant[T_OWN + band] = tenant[T_OWN + band] + by
    return forget(band)
  end
  tenant[T_COUNTER + t] = tenant[T_COUNTER + t] + by
  if news[N_NEW + n] > 0 and tenant[T_COUNT + t] > 0 and not came_back then
    news[N_LEVEL + n] = math.min(news[N_LEVEL + n], tenant[T_COUNTER + t])
  end
  if by ~= 0 then
    moved(name, tenant, band)
  else
    forget(band)
  end
end

-- Once its TENANT says that it has less: where nothing is left it is not active any more.
local function rest(name, band)
  local tenant, t = tenant_of(name), OF_BAND_T * band
  if not is_active(tenant, t) then
    local idle = P_IDLE + OF_BAND_P * band
    if tenant[T_COUNTER + t] >= least_owed(band) then
      call('ZADD', idle_keys[band], tenant[T_COUNTER + t], name)
      pool[idle] = pool[idle] + 1
    end
    tenant[T_COUNTER + t] = 0
  end
end

-- Tenants that wait in a band, in turn: the next at each call, some `count` of them, AT behind all.
-- Newcomers go before whoever stands no lower than they do.
local function in_turn(band)
  local n, at, passed = OF_BAND_N * band, 0, 0
  local others, newcomers = turns_keys[band], news[N_NEW + n] > 0 and {}
  local kept = news[N_NEW + n] - (fresh[band] and 1 or 0)
  local phase = news[N_NEW + n] > 0 and 1 or 3
  return function(count)
    if phase == 1 then
      local below = format('(%.0f', news[N_LEVEL + n])
      local found = call('ZRANGEBYSCORE', others, '-inf', below, 'LIMIT', at, count)
      at = at + #found
      if #found > 0 then
        return found
      end
      phase, at, passed = 2, 0, at
    end
    if phase == 2 then
      local last = math.min(at + count, kept) - 1
      local found = at <= last and call('ZRANGE', new_keys[band], at, last) or {}
      at = at + #found
      if at >= kept then
        phase, at = 3, passed
        found[#found + 1] = fresh[band]
      end
      for _, name in ipairs(found) do
        newcomers[name] = true
      end
      if #found > 0 then
        return found
      end
    end
    local all, found
    repeat
      all, found = call('ZRANGE', others, at, at + count - 1), {}
      at = at + #all
      if not newcomers then
        return all
      end
      for _, name in ipairs(all) do
        if not newcomers[name] then
          found[#found + 1] = name
        end
      end
    until #found > 0 or #all == 0
    return found
  end
end
