-- It ended, or does not want to wait any more. ARGV[4] the id; [5] its cost in weighted tokens, -1
-- where it never ran.
reap()
local ticket, actual = load_ticket(ARGV[4]), tonumber(ARGV[5])
if ticket and ticket[K_STATE] >= WAITING_STATE then
  withdraw(ticket)
elseif ticket then
  if actual >= 0 then
    local cost, held_ms = math.max(actual, 1), math.max(1, now - ticket[K_GRANTED])
    local before, before_ms = pool[P_SPEED_COST], pool[P_SPEED_COST_MS]
    pool[P_SPEED_COST] = before + cost - floor(before / MEMORY)
    pool[P_SPEED_COST_MS] = before_ms + cost * held_ms - floor(before_ms / MEMORY)
  end
  free(ticket, math.max(actual, 0))
end
dispatch()
return done({})
