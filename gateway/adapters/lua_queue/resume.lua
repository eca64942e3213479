-- A store that forgot them is told what runs. ARGV from [4] on, for each: worker, 1 where a token of
-- its answer came, then the wish. Idempotent.
reap()
for at = 4, #ARGV, 15 do
  local known = load_ticket(ARGV[at + 2])
  if known and known[K_STATE] >= WAITING_STATE then
    withdraw(known)
    known = nil
  end
  if not known then
    local ticket = wished(at + 2)
    local name, band = ticket[K_TENANT], order_band(ticket)
    activate(name, band)
    charge(name, band, units(ticket[K_COST], ticket[K_WEIGHT]))
    place_it(ticket, ARGV[at], ARGV[at + 1] == '1' and S_BEGAN or S_HELD, now + ttl_ms, 0)
  elseif ARGV[at + 1] == '1' then
    become(known, S_BEGAN)
  end
end
dispatch()
return done({})
