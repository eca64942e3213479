-- The earliest that is parked, of a tenant (PARKED) or of a lot (LOTS). A gateway of the release
-- before leaves in LOTS what is not parked any more.
local function first_parked(key, name)
  while true do
    local member = call('ZRANGEBYLEX', key, '[' .. name .. '\0', '(' .. name .. '\1',
      'LIMIT', 0, 1)[1]
    local ticket = member and load_ticket(sub(member, #name + 19)) or nil
    if not member or ticket and ticket[K_STATE] == PARKED_STATE then
      return ticket
    end
    call('ZREM', key, member)
  end
end
