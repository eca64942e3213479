-- The first token of its answer came. ARGV[4] the id. Reply: 1, or 0 where it holds no place.
reap()
local place = load_ticket(ARGV[4])
local holds = place and place[K_STATE] < WAITING_STATE
if holds then
  become(place, S_BEGAN)
  call('ZADD', DUE, now + ttl_ms, ARGV[4])
end
dispatch()
return done({holds and 1 or 0})
