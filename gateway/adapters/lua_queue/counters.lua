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

-- Whoever was served less than those that wait may turn out to have been.
local function forget(band)
  local idle = P_IDLE + OF_BAND_P * band
  if pool[idle] > 0 then
    local below = format('(%.0f', lowest(band) - news[N_EXPECTED + OF_BAND_N * band])
    pool[idle] = pool[idle] - call('ZREMRANGEBYSCORE', idle_keys[band], '-inf', below)
  end
end

local function no_newcomer(name, band)
  local n, gone = OF_BAND_N * band, 1
  tenant_of(name)[T_OWN + band] = nil
  if fresh[band] == name then
    fresh[band] = nil
  else
    gone = call('ZREM', KEYS[16 + band], name)
  end
  news[N_NEW + n] = news[N_NEW + n] - gone
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
    if tenant[T_COUNTER + t] >= lowest(band) - news[N_EXPECTED + OF_BAND_N * band] then
      call('ZADD', idle_keys[band], tenant[T_COUNTER + t], name)
      pool[idle] = pool[idle] + 1
    end
    tenant[T_COUNTER + t] = 0
  end
end
