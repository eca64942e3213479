-- It ended, or does not want to wait any more. ARGV[4] the id; [5] its cost in weighted tokens, -1
-- where it never ran.
reap()
local ticket, actual = load_ticket(ARGV[4]), tonumber(ARGV[5])
if ticket and ticket[K_STATE] >= WAITING_STATE then
  withdraw(ticket)
elseif ticket then
  local cost = actual >= 0 and math.max(actual, 1) or 0
  if actual >= 0 then
    local held_ms = math.max(1, now - ticket[K_GRANTED])
    local before, before_ms = pool[P_SPEED_COST], pool[P_SPEED_COST_MS]
    pool[P_SPEED_COST] = before + cost - floor(before / MEMORY)
    pool[P_SPEED_COST_MS] = before_ms + cost * held_ms - floor(before_ms / MEMORY)
  end
  free(ticket, cost)
  local first = actual >= 0 and first_parked(PARKED, ticket[K_TENANT])
  if first then
    -- Its limits may have room: for the first of its lot, and for the first of its tenant. Its own
    -- gateway knows.
    local of_lot = first_parked(LOTS, ticket[K_TENANT] .. '\0' .. ticket[K_LOT])
    local told = ticket[K_GATEWAY]
    if of_lot and of_lot[K_GATEWAY] ~= told then
      tell(of_lot, 2)
    end
    if first[K_GATEWAY] ~= told and not (of_lot and of_lot[K_GATEWAY] == first[K_GATEWAY]) then
      tell(first, 2)
    end
  end
end
dispatch()
return done({})
