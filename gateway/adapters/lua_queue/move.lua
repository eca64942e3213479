-- Its worker failed before a token came, and it is tried on another. ARGV[4] the id; [5] the worker.
-- Reply: 1, or 0 where it holds no place.
reap()
local place = load_ticket(ARGV[4])
local holds = place and place[K_STATE] < WAITING_STATE
if holds then
  count_place(place, -1)
  place[K_WORKER] = ARGV[5]
  count_place(place, 1)
  save_ticket(place)
end
dispatch()
return done({holds and 1 or 0})
