-- Track a month's money from what live leases have reserved (admission_leases.begin_month). Takes
-- as long as there are leases: about a microsecond for each.
-- ARGV: 1 now, 2 month
-- Reply: {0}: begun less than BEGIN_AGAIN_MS ago; {1, now, request id held or lapsed…}
local AT_A_TIME = 500
local month = ARGV[2]
if not open({}, {}) then
  return UNBORN
end
if reap() then
  return AGAIN
end
local m = tracked(month)
if m and math.abs(now_ms - m.at_ms) < BEGIN_AGAIN_MS then
  save()
  save_money()
  return { 0 }
end

local function month_before(text)
  local year, number = string.match(text, '^(%d+)-(%d+)$')
  if tonumber(number) > 1 then
    return string.format('%s-%02d', year, number - 1)
  end
  return string.format('%04d-12', year - 1)
end

save()
save_money()
funds = {}
local oldest_kept = month_before(month)
for _, field in ipairs(redis.call('HKEYS', MONEY)) do
  local of = string.sub(field, 1, #month)
  if of < oldest_kept or of == month then
    redis.call('HDEL', MONEY, field)
  end
end
forget_recent(month)
redis.call('HSET', MONEY, month, struct.pack(MONTH, now_ms, 0))
redis.call('EXPIRE', MONEY, MONEY_TTL_S)
months[month] = { at_ms = now_ms, known = false }

local reply = { 1, now_ms }
for _, zset in ipairs({ LEASES, LAPSED }) do
  local rids = redis.call('ZRANGEBYSCORE', zset, '(' .. string.format('%.0f', now_ms), '(' .. NEVER)
  for first = 1, #rids, AT_A_TIME do
    local last = math.min(first + AT_A_TIME - 1, #rids)
    local records = redis.call('HMGET', BOOK, unpack(rids, first, last))
    for i, record in ipairs(records) do
      local lease = parse_lease(record)
      reply[#reply + 1] = rids[first + i - 1]
      if zset == LEASES and lease.month == month then
        reserve(lease, scopes_of(lease))
      end
    end
  end
end
save_money()
return reply
