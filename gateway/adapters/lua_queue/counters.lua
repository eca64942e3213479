-- Virtual token counters (domain/queue/fairness.Counters). A tenant is active in a band while
-- something of it waits or runs there; its TENANT holds its counter meanwhile.
local function is_active(tenant, t)
  return tenant[T_COUNT + t] + tenant[T_RUNNING + t] > 0
end

-- What a tenant that begins to wait is lifted to.
local function lowest(band)
  local first = call('ZRANGE', turns_keys[band], 0, 0, 'WITHSCORES')
  if first[1] == AT then
    return pool[P_DEPARTED + OF_BAND_P * band]
  end
  return tonumber(first[2])
end

local function forget(band)
  local idle = P_IDLE + OF_BAND_P * band
  if pool[idle] > 0 then
    local gone = call('ZREMRANGEBYSCORE', idle_keys[band], '-inf', lowest(band))
    pool[idle] = pool[idle] - gone
  end
end

-- It waits or runs from now on; before its TENANT says so.
local function activate(name, band)
  local tenant, t, idle = tenant_of(name), OF_BAND_T * band, P_IDLE + OF_BAND_P * band
  if not is_active(tenant, t) then
    local counter = lowest(band)
    local before = pool[idle] > 0 and call('ZSCORE', idle_keys[band], name)
    if before then
      pool[idle] = pool[idle] - call('ZREM', idle_keys[band], name)
      counter = math.max(tonumber(before), counter)
    end
    tenant[T_COUNTER + t] = counter
  end
end

-- It begins to wait; before its TENANT says so. `came_back`: a place of it was taken back.
local function begin_to_wait(name, band, came_back)
  local tenant, t = tenant_of(name), OF_BAND_T * band
  if not (came_back and is_active(tenant, t)) then
    activate(name, band)
    tenant[T_COUNTER + t] = math.max(tenant[T_COUNTER + t], lowest(band))
  end
  call('ZADD', turns_keys[band], tenant[T_COUNTER + t], name)
  forget(band)
end

-- Once its TENANT says that nothing of it waits.
local function waited(name, band)
  local tenant, t = tenant_of(name), OF_BAND_T * band
  if tenant[T_COUNT + t] == 0 then
    call('ZREM', turns_keys[band], name)
    pool[P_DEPARTED + OF_BAND_P * band] = tenant[T_COUNTER + t]
    forget(band)
  end
end

local function units(cost, weight)
  return floor(cost * UNITS / weight)
end

local function charge(name, band, by)
  local tenant, t = tenant_of(name), OF_BAND_T * band
  tenant[T_COUNTER + t] = tenant[T_COUNTER + t] + by
  if by ~= 0 and tenant[T_COUNT + t] > 0 then
    call('ZADD', turns_keys[band], tenant[T_COUNTER + t], name)
    forget(band)
  end
end

-- Once its TENANT says that it has less: where nothing is left it is not active any more.
local function rest(name, band)
  local tenant, t = tenant_of(name), OF_BAND_T * band
  if not is_active(tenant, t) then
    local idle = P_IDLE + OF_BAND_P * band
    if tenant[T_COUNTER + t] > lowest(band) then
      call('ZADD', idle_keys[band], tenant[T_COUNTER + t], name)
      pool[idle] = pool[idle] + 1
    end
    tenant[T_COUNTER + t] = 0
  end
end
