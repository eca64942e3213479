-- What workers may hold from now on. ARGV[4] for how long they are taken for well, ms; then for each:
-- id, sequences, sequences where batch is among them, tokens.
reap()
for at = #rooms, 1, -1 do
  if rooms[at][R_RUNNING] == 0 and rooms[at][R_WELL_UNTIL] + FORGOTTEN_MS <= now then
    table.remove(rooms, at)
    is_renamed = true
  end
end
for at = 5, #ARGV, 4 do
  local room = room_of(ARGV[at])
  room[R_SEQUENCES_MAX], room[R_BATCH_MAX] = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  room[R_TOKENS_MAX], room[R_WELL_UNTIL] = tonumber(ARGV[at + 3]), now + tonumber(ARGV[4])
end
dispatch()
return done({})
