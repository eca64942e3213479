-- Add what a month cost before it was begun; it is known from now on (admission_leases.finish_month).
-- ARGV: 1 now, 2 month, 3 when it was begun, then for each scope: name, units, pico
-- Reply: {1}, or {0} where it was not begun then, is known already or was begun too long ago
local month = ARGV[2]
if not open({}, {}) then
  return UNBORN
end
if reap() then
  return AGAIN
end
local m = tracked(month)
local is_finished = is_open(m) and m.at_ms == tonumber(ARGV[3])
if is_finished then
  for i = 4, #ARGV, 3 do
    local f = fund_of(month, ARGV[i])
    f.spent, f.spent_pico =
      add(f.spent, f.spent_pico, tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]))
    f.changed = true
  end
  redis.call('HSET', MONEY, month, struct.pack(MONTH, m.at_ms, 1))
  forget_recent(month)
end
save()
save_money()
return { is_finished and 1 or 0 }
