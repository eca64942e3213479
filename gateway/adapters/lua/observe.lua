-- Limits in force and use now (admission.observe); with no scope at all, only what time changes.
-- ARGV: 1 now, 2 month or empty, 3 the scopes' LIMITS, then '@' scope for each
-- Reply: {leases held, lapsed remembered, uses…} as of acquire.lua
local month = ARGV[2]
local found, meta = open(unpack(ARGV, 4))
if not found then
  return meta
end
local uses, money, limits, is_newer, is_known = {}, {}, {}, false, false
if meta[TRACKED] == 1 and month ~= '' then
  local record = redis.call('HGET', MONEY, month)
  if record then
    local _, known = struct.unpack(MONTH, record)
    is_known = known == 1
  end
end
for i = 1, #ARGV - 3 do
  local field, s = ARGV[i + 3], parse(found[i + 1])
  is_newer = offer(s, ARGV[3], (i - 1) * LIMITS_SIZE + 1) or is_newer
  advance(s)
  save(field, s, meta)
  uses[i] = struct.pack('<dddd', s[RUNNING], s[TOKENS], s[REQUESTS], reset_ms(s))
  limits[i] = string.sub(packed(s), 1, LIMITS_SIZE)
  if is_known then
    money[i] = redis.call('HGET', MONEY, month .. field) or struct.pack(FUND, 0, 0, 0, 0)
  end
end
close(meta)
return { redis.call('ZCOUNT', DUE, '-inf', LIVE_LAST), redis.call('ZCOUNT', DUE, LAPSED, LAPSED_LAST), table.concat(uses),
  table.concat(money), is_newer and table.concat(limits) or '' }
