-- Tickets, and those that wait in a band (domain/queue/lines.Line).
-- The names of a TICKET are tenant, gateway and worker. Its lot is behind its gateway's: so one of
-- the release before keeps it; what that tells of the ticket is lost, and told again by renew.
local function ticket_of(id, kept)
  local ticket = {sunpack(TICKET_FORMAT, kept)}
  ticket[K_TENANT], ticket[K_GATEWAY], ticket[K_LOT], ticket[K_WORKER] =
    string.match(kept, '^(%Z*)%z([^%z\1]*)\1?(%Z*)%z(%Z*)$', ticket[TICKET_FIELDS + 1])
  ticket[K_ID] = id
  return ticket
end

local function load_ticket(id)
  local kept = call('HGET', TICKETS, id)
  return kept and ticket_of(id, kept) or nil
end

local function save_ticket(ticket)
  call('HSET', TICKETS, ticket[K_ID], spack(TICKET_FORMAT, unpack(ticket, 1, TICKET_FIELDS))
    .. ticket[K_TENANT] .. '\0' .. ticket[K_GATEWAY] .. '\1' .. ticket[K_LOT]
    .. '\0' .. ticket[K_WORKER])
end

local function order_band(ticket)
  return ticket[K_TAKEN_BACK] >= TAKEN_BACK_MAX and 0 or ticket[K_BAND]
end

local function size(ticket)
  return format('%d%06d%012d', ticket[K_BAND], ticket[K_SEQUENCES], ticket[K_NEED])
end

local function order_member(ticket)
  return ticket[K_TENANT] .. '\0' .. format('%016d', ticket[K_DEADLINE]) .. ticket[K_ID]
    .. '\0' .. size(ticket)
end

-- The tenant's own from this one in its order, some of them.
local function waiting_of(name, band, first, count)
  return call('ZRANGEBYLEX', order_keys[band], '[' .. name .. '\0', '(' .. name .. '\1',
    'LIMIT', first, count)
end

local function take_out(ticket)
  local name, band = ticket[K_TENANT], order_band(ticket)
  local tenant, t, p = tenant_of(name), OF_BAND_T * band, OF_BAND_P * band
  call('ZREM', order_keys[band], order_member(ticket))
  call('ZREM', since_keys[band], ticket[K_ID])
  if band == 1 then
    call('ZREM', PROMOTE, ticket[K_ID] .. '\0' .. size(ticket))
  end
  tenant[T_COUNT + t] = tenant[T_COUNT + t] - 1
  tenant[T_TOKENS + t] = tenant[T_TOKENS + t] - ticket[K_COST]
  pool[P_COUNT + p] = pool[P_COUNT + p] - 1
  pool[P_TOKENS + p] = pool[P_TOKENS + p] - ticket[K_COST]
  pool[P_NEED + p] = pool[P_NEED + p] - ticket[K_NEED]
end

-- It is parked from now on, by = 1, or not any more, -1.
local function count_parked(ticket, by)
  local own = format('%d%016d', order_band(ticket), ticket[K_DEADLINE]) .. ticket[K_ID]
  local name = ticket[K_TENANT] .. '\0'
  if by > 0 then
    call('ZADD', PARKED, 0, name .. own)
    call('ZADD', LOTS, 0, name .. ticket[K_LOT] .. '\0' .. own, 0, AT)
  else
    call('ZREM', PARKED, name .. own)
    call('ZREM', LOTS, name .. ticket[K_LOT] .. '\0' .. own)
  end
end

-- Nobody is overtaken in this band.
local function clear_bypass(b)
  if pool[P_BYPASS_WORKER + b] ~= '' then
    local kept_ms = math.min(now - pool[P_BYPASS_KEPT + b], KEPT_MS)
    pool[P_BYPASS_RESTS + b] = math.max(pool[P_BYPASS_RESTS + b],
      now + floor(kept_ms * pool[P_BYPASS_REST + b] / 1000))
  end
  pool[P_BYPASS_ID + b], pool[P_BYPASS_TOKENS + b], pool[P_BYPASS_REST + b] = '', 0, 0
  pool[P_BYPASS_WORKER + b], pool[P_BYPASS_KEPT + b] = '', 0
end

-- It waits no more, so nobody overtakes it.
local function left_order(id)
  for b = 0, OF_BAND_P, OF_BAND_P do
    if pool[P_BYPASS_ID + b] == id then
      clear_bypass(b)
    end
  end
end

local function withdraw(ticket)
  local name = ticket[K_TENANT]
  local tenant = tenant_of(name)
  call('HDEL', TICKETS, ticket[K_ID])
  call('ZREM', DUE, ticket[K_ID])
  tenant[1] = tenant[1] - 1
  if ticket[K_STATE] == PARKED_STATE then
    count_parked(ticket, -1)
  else
    take_out(ticket)
    waited(name, order_band(ticket))
    rest(name, order_band(ticket))
  end
  left_order(ticket[K_ID])
end
