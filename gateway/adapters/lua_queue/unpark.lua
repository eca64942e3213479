-- The limits of a lot may have room: the earliest of its parked requests waits for a place again.
-- ARGV[4] the tenant; [5] the lot.
reap()
local ticket = first_parked(LOTS, ARGV[4] .. '\0' .. ARGV[5])
if ticket then
  count_parked(ticket, -1)
  ticket[K_STATE] = WAITING_STATE
  save_ticket(ticket)
  add(ticket)
end
dispatch()
return done({})
