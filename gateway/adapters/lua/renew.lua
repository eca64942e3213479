-- Prolong the leases that a gateway holds; take up again what lapsed or was lost
-- (admission_leases.renew).
-- ARGV: 1 now, 2 time to live ms, then for each lease: request id, its record as its holder
--       remembers it, whether it is carried (1 or 0)
-- Reply: {renewed, resumed, recreated, over, now}
local expires_ms = now_ms + tonumber(ARGV[2])
local reply = { 0, 0, 0, 0, now_ms }
local RENEWED = 1
local RESUMED = 2
local RECREATED = 3
local OVER = 4
local rids = {}
for i = 3, #ARGV, 3 do
  rids[#rids + 1] = ARGV[i]
end
local found, meta = open(unpack(rids))
if not found then
  return meta
end
set_right(meta, tonumber(ARGV[2]))
local held = {}
for i, rid in ipairs(rids) do
  local record = found[i + 1]
  local state = state_of(record)
  local is_due = ARGV[i * 3 + 2] == '1'
  if state == 'S' then
    reply[OVER] = reply[OVER] + 1
  else
    held[#held + 1], held[#held + 2] = expires_ms, rid
    if state ~= 'L' or is_due then
      local lease = parse_lease(state and record or ARGV[i * 3 + 1])
      local list = scopes_of(lease)
      if not state then
        is_due = is_due or (lease.second + WINDOW_S) * 1000 > now_ms
        lease.second = 0
      end
      if state ~= 'L' then
        run(lease, list, 1)
        reserve(lease, false)
      end
      if is_due then
        lease.second = charge_anew(list, lease.second, lease.tokens)
      end
      redis.call('HSET', BOOK, rid, pack_lease('L', lease))
    end
    local how = state == 'L' and RENEWED or state and RESUMED or RECREATED
    reply[how] = reply[how] + 1
  end
end
if #held > 0 then
  redis.call('ZADD', DUE, unpack(held))
  due(meta, expires_ms)
end
save_shelf(meta)
close(meta)
return reply
