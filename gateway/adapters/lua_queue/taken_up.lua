-- Take up as a step of its own.
local function taken_up(id)
  reap()
  local place = load_ticket(id)
  local holds = place and place[K_STATE] < WAITING_STATE
  if holds then
    call('ZADD', DUE, now + ttl_ms, id)
    if place[K_STATE] == S_GRANTED then
      place[K_STATE] = S_HELD
      save_ticket(place)
    end
  end
  dispatch()
  if not holds then
    return {6}
  end
  place = load_ticket(id)
  return place[K_STATE] == S_TAKEN_BACK and {5} or {0, place[K_WORKER]}
end
