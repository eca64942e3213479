-- Add what a month cost before it was begun; it is known from now on (admission_leases.finish_month).
-- ARGV: 1 now, 2 month, 3 when it was begun, then for each scope: name, units, pico
-- Reply: {1}, or {0} where it was not begun then, is known already or was begun too long ago
local month = ARGV[2]
local found, meta = open()
if not found then
  return meta
end
close(meta)
local at_ms, is_known = tracked(month)
if is_known or at_ms ~= tonumber(ARGV[3]) or now_ms - at_ms >= FINISH_WITHIN_MS then
  return { 0 }
end
for i = 4, #ARGV, 3 do
  change_fund(month, ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), 0, 0, false)
end
redis.call('HSET', MONEY, month, struct.pack(MONTH, at_ms, 1))
local recent = redis.call('HGETALL', RECENT)
for i = 1, #recent, 2 do
  if recent[i + 1] == month then
    redis.call('HDEL', RECENT, recent[i])
  end
end
return { 1 }
