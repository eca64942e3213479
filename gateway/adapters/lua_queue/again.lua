-- A place is free and its request waits again. ARGV[4] the id; [5] 1 where it is parked for its
-- tenant's limits, 0 where it gives back what was taken back; [6] of one that is parked, how many of
-- its tenant may wait. Reply: an ANSWER.
reap()
local id, is_parked = ARGV[4], ARGV[5] == '1'
local place = load_ticket(id)
local state = place and place[K_STATE]
if place and (state == S_TAKEN_BACK or is_parked and state < S_BEGAN) then
  -- First it waits, then its place is free: so its tenant was active all along.
  local ticket = load_ticket(id)
  ticket[K_WORKER], ticket[K_GRANTED], ticket[K_IS_FLOOR] = '', 0, 0
  if not is_parked then
    ticket[K_TAKEN_BACK] = ticket[K_TAKEN_BACK] + 1
    ticket[K_DEADLINE] = math.max(ticket[K_DEADLINE], now + TAKEN_BACK_WAIT_MS)
  end
  local others = tenant_of(ticket[K_TENANT])[1]
  local is_full = is_parked and others >= tonumber(ARGV[6])
  local waits = ticket[K_DEADLINE] > now and not is_full
  if waits then
    wait(ticket, is_parked and PARKED_STATE or WAITING_STATE, true)
  end
  free(place, 0)
  if waits then
    keep(ticket)
  end
  if is_full then
    dispatch()
    return done({{2, others}})
  end
end
dispatch()
return done({renewed(load_ticket(id))})
