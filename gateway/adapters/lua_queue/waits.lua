-- Who begins to wait (domain/queue/fairness.Counters.wait, lines.Line.add).
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
      news[N_LEVEL + n] = least
      news[N_NEW + n], news[N_TURN + n] = news[N_NEW + n] + 1, news[N_TURN + n] + 1
    end
  end
  call('ZADD', turns_keys[band], tenant[T_COUNTER + t], name)
  forget(band)
end

-- It waits; `came_back`: its place, which still runs, was taken back.
local function add(ticket, came_back)
  local name, band = ticket[K_TENANT], order_band(ticket)
  local tenant, t, p = tenant_of(name), OF_BAND_T * band, OF_BAND_P * band
  if tenant[T_COUNT + t] == 0 then
    begin_to_wait(name, band, came_back)
  end
  call('ZADD', order_keys[band], 0, order_member(ticket))
  call('ZADD', since_keys[band], ticket[K_ENTERED], ticket[K_ID])
  if band == 1 then
    call('ZADD', PROMOTE, ticket[K_PROMOTE], ticket[K_ID] .. '\0' .. size(ticket))
  end
  tenant[T_COUNT + t] = tenant[T_COUNT + t] + 1
  tenant[T_TOKENS + t] = tenant[T_TOKENS + t] + ticket[K_COST]
  tenant[T_WEIGHT + t] = ticket[K_WEIGHT]
  pool[P_COUNT + p] = pool[P_COUNT + p] + 1
  pool[P_TOKENS + p] = pool[P_TOKENS + p] + ticket[K_COST]
  pool[P_NEED + p] = pool[P_NEED + p] + ticket[K_NEED]
end

local function keep(ticket)
  save_ticket(ticket)
  call('ZADD', DUE, math.min(now + ttl_ms, ticket[K_DEADLINE]), ticket[K_ID])
end

-- It waits, or is parked, from now on; not kept yet.
local function wait(ticket, state, came_back)
  local tenant = tenant_of(ticket[K_TENANT])
  ticket[K_STATE] = state
  tenant[1] = tenant[1] + 1
  if state == PARKED_STATE then
    count_parked(ticket, 1)
  else
    add(ticket, came_back)
  end
end
