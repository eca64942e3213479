-- What is granted, or was found to run, is charged as it is expected.
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

-- A ticket that does not wait becomes a place; its tenant runs one more.
local function place_it(ticket, worker, state, lapses_ms, is_floor)
  local tenant, running = tenant_of(ticket[K_TENANT]), T_RUNNING + OF_BAND_T * order_band(ticket)
  ticket[K_STATE], ticket[K_WORKER], ticket[K_GRANTED] = state, worker, now
  ticket[K_IS_FLOOR] = is_floor
  tenant[running] = tenant[running] + 1
  pool[P_RUNNING_COST] = pool[P_RUNNING_COST] + ticket[K_COST]
  count_place(ticket, 1)
  save_ticket(ticket)
  call('ZADD', DUE, lapses_ms, ticket[K_ID])
end
