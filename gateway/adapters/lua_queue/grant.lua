-- Whoever has room is granted, in order. Inside a function: mostly no worker has room.
  local granted = 0
  local ticket, worker, is_floor = choose()
  while ticket do
    granted = granted + 1
    local name = ticket[K_TENANT]
    local tenant = tenant_of(name)
    tenant[1] = tenant[1] - 1
    take_out(ticket)
    charge(name, order_band(ticket), units(ticket[K_COST], ticket[K_WEIGHT]))
    waited(name, order_band(ticket))
    if ticket[K_ID] == asking then
      place_it(ticket, worker, S_HELD, now + ttl_ms, is_floor)
    else
      place_it(ticket, worker, S_GRANTED, now + TAKE_UP_MS, is_floor)
      tell(ticket, 1)
    end
    if granted == GRANTED_AT_ONCE then
      unfinished = 1
      return false
    end
    ticket, worker, is_floor = nil, nil, nil
    if is_any_open() then
      ticket, worker, is_floor = choose()
    end
  end
  return true
