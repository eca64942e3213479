-- Limits in force and use now (admission.observe); with no scope at all, only what time changes.
-- ARGV: 1 now, 2 month or empty, 3 limits of the scopes, then the scopes' names
-- Reply: {leases held, lapsed remembered, uses}
local month = ARGV[2]
local names = {}
for i = 4, #ARGV do
  names[i - 3] = ARGV[i]
end
if not open(names, {}) then
  return UNBORN
end
if reap() then
  return AGAIN
end
local list = {}
for i, name in ipairs(names) do
  list[i] = scope_of(name)
  offer(list[i], string.sub(ARGV[3], (i - 1) * LIMITS_SIZE + 1, i * LIMITS_SIZE))
  advance(list[i])
end
open_month(month, names)
save()
save_money()
return { redis.call('ZCARD', LEASES) - 1, redis.call('ZCARD', LAPSED) - 1, uses_of(list, month) }
