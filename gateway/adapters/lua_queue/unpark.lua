-- A tenant's limits may have room: the earliest of its parked requests waits for a place again.
-- ARGV[4] the tenant.
reap()
local name = ARGV[4]
local member = call('ZRANGEBYLEX', PARKED, '[' .. name .. '\0', '(' .. name .. '\1',
  'LIMIT', 0, 1)[1]
if member then
  local ticket = load_ticket(sub(member, #name + 19))
  call('ZREM', PARKED, member)
  ticket[K_STATE] = WAITING_STATE
  save_ticket(ticket)
  add(ticket)
end
dispatch()
return done({})
