-- Ask for a place. ARGV[4] to [16] the wish; [17] how many of the tenant may wait; [18] 1 where it
-- is new, 0 where it was let wait before.
-- Reply: an ANSWER. Idempotent by id.
reap()
local known = load_ticket(ARGV[4])
if known then
  return done({known[K_STATE] < WAITING_STATE and taken_up(ARGV[4]) or renewed_after(ARGV[4])})
end
local is_any_well = false
for _, room in ipairs(rooms) do
  is_any_well = is_any_well or room[R_WELL_UNTIL] > now
end
if not is_any_well then
  return done({{7}})
end
local ticket = wished(4)
wait(ticket, WAITING_STATE)
keep(ticket)
local is_done = dispatch(ticket[K_ID])
ticket = load_ticket(ticket[K_ID])
if ticket[K_STATE] < WAITING_STATE then
  return done({{0, ticket[K_WORKER]}})
end
local answer = queued(ticket)
if not is_done then
  return done({answer})
end
local others = tenant_of(ticket[K_TENANT])[1] - 1
if others >= tonumber(ARGV[17]) then
  withdraw(ticket)
  return done({{2, others}})
end
local expected_ms = ARGV[18] == '1' and math.max(answer[4], 0) or 0
if now + floor(expected_ms / TOO_LONG_BY) >= ticket[K_DEADLINE] then
  withdraw(ticket)
  return done({{3, expected_ms}})
end
if is_any_takeable() then
  take_back()
end
return done({answer})
