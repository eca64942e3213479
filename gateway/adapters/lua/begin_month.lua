-- Track a month's money from what live leases have reserved (admission_leases.begin_month); what is
-- held in the same month of another time zone counts in it from now on. Takes
-- as long as there are leases: some ten microseconds for each that has a cost.
-- ARGV: 1 now, 2 month, 3 whether it is begun again by who may have begun it (1 or 0)
-- Reply: {0}: begun less than BEGIN_AGAIN_MS ago by another; {1, now, request id held or lapsed…}
local BEGIN_AGAIN_MS = 3000
local AT_A_TIME = 500
local MONEY_TTL_S = 6048000 -- 70 days: a month counts for 31 and the longest stream
local month, label = ARGV[2], string.sub(ARGV[2], 1, 7)
local currency = string.match(month, '[^:]*$')
local found, meta = open()
if not found then
  return meta
end
local begun_ms = tracked(month)
if begun_ms and math.abs(now_ms - begun_ms) < BEGIN_AGAIN_MS and ARGV[3] ~= '1' then
  close(meta)
  return { 0 }
end

local year, number = string.match(label, '^(%d+)-(%d+)$')
local oldest_kept = string.format('%s-%02d', year, number - 1)
if tonumber(number) == 1 then
  oldest_kept = string.format('%04d-12', year - 1)
end
for _, field in ipairs(redis.call('HKEYS', MONEY)) do
  local of = string.sub(field, 1, 7)
  if of < oldest_kept or of == label then
    redis.call('HDEL', MONEY, field)
  end
end
local recent = redis.call('HGETALL', RECENT)
for i = 1, #recent, 2 do
  if string.sub(recent[i + 1], 1, 7) == label then
    redis.call('HDEL', RECENT, recent[i])
  end
end
redis.call('HSET', MONEY, month, struct.pack(MONTH, now_ms, 0))
redis.call('EXPIRE', MONEY, MONEY_TTL_S)
meta[TRACKED], meta[META_CHANGED] = 1, true

local reply, sums = { 1, now_ms }, {}
local rids = redis.call('ZRANGEBYSCORE', DUE, '-inf', LAPSED_LAST)
for first = 1, #rids, AT_A_TIME do
  local last = math.min(first + AT_A_TIME - 1, #rids)
  for i, record in ipairs(redis.call('HMGET', BOOK, unpack(rids, first, last))) do
    reply[#reply + 1] = rids[first + i - 1]
    local lease = record and #record >= LEASE_REST and parse_lease(record)
    if lease and lease.month ~= month and string.sub(lease.month, 1, 7) == label
        and string.match(lease.month, '[^:]*$') == currency then
      lease.rest = month .. string.sub(lease.rest, #lease.month + 1)
      lease.month = month
      redis.call('HSET', BOOK, rids[first + i - 1], pack_lease(lease.state, lease))
    end
    local counts = lease and lease.state == 'L' and lease.month == month
    if counts and (lease.cost > 0 or lease.cost_pico > 0) then
      for _, name in ipairs(lease.names) do
        local sum = sums[name] or { 0, 0 }
        sum[1], sum[2] = add(sum[1], sum[2], lease.cost, lease.cost_pico)
        sums[name] = sum
      end
    end
  end
end
for name, sum in pairs(sums) do
  redis.call('HSET', MONEY, month .. '@' .. name, struct.pack(FUND, 0, 0, sum[1], sum[2]))
end
close(meta)
return reply
