-- A gateway lives and wants these. ARGV[4] 1 where it wants to know how those stand that wait; from [5]
-- on: ids. Reply: an ANSWER for each, in their order.
reap()
dispatch()
local wants_standing, lapses_ms = ARGV[4] == '1', now + ttl_ms
local answers, due = {}, {}
local unknown, still, parked, taken_back = {6}, {8}, {4}, {5}
for at, kept in ipairs(call('HMGET', TICKETS, unpack(ARGV, 5))) do
  local id, state, until_ms = ARGV[at + 4], kept and sunpack('<d', kept), lapses_ms
  if not kept then
    answers[at], until_ms = unknown, nil
  elseif state < WAITING_STATE then
    answers[at] = state == S_TAKEN_BACK and taken_back or {0, ticket_of(id, kept)[K_WORKER]}
    until_ms = state ~= S_GRANTED and lapses_ms
  else
    until_ms = math.min(lapses_ms, (sunpack('<d', kept, 8 * K_DEADLINE - 7)))
    answers[at] = state == PARKED_STATE and parked or
      wants_standing and queued(ticket_of(id, kept)) or still
  end
  if until_ms then
    due[#due + 1], due[#due + 2] = until_ms, id
  end
end
if #due > 0 then
  call('ZADD', DUE, unpack(due))
end
return done({answers})
