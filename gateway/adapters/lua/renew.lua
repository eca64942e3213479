-- Prolong the leases that a gateway holds; take up again what lapsed or was lost
-- (admission_leases.renew).
-- ARGV: 1 now, 2 time to live ms, then for each lease: request id, its record as its holder
--       remembers it, whether it is carried (1 or 0)
-- Reply: {renewed, resumed, recreated, over, now}
local expires_ms = now_ms + tonumber(ARGV[2])
local renewed, resumed, recreated, over = 0, 0, 0, 0
local rids = {}
for i = 3, #ARGV, 3 do
  rids[#rids + 1] = ARGV[i]
end
local records = open({}, rids)
if not records then
  return UNBORN
end
if reap() then
  return AGAIN
end
for i, rid in ipairs(rids) do
  local record = written[rid] or records[i]
  local state = state_of(record)
  local is_due = ARGV[i * 3 + 2] == '1'
  if state == 'S' then
    over = over + 1
  else
    local lease
    if state then
      lease = parse_lease(record)
    else
      lease = parse_lease(ARGV[i * 3 + 1])
      is_due = is_due or (lease.second + CELLS) * 1000 > now_ms
      lease.second = 0
    end
    if state ~= 'L' then
      local list = scopes_of(lease)
      for _, s in ipairs(list) do
        s.running = s.running + lease.sequences
        touch(s)
      end
      reserve(lease, list)
    end
    if is_due then
      charge_anew(lease, scopes_of(lease))
    end
    if state == 'L' then
      renewed = renewed + 1
      redis.call('ZADD', LEASES, expires_ms, rid)
      due_at(expires_ms)
      if is_due then
        written[rid] = pack_lease('L', lease, 0)
      end
    else
      if state == 'P' then
        resumed = resumed + 1
      else
        recreated = recreated + 1
      end
      hold(rid, record, lease, expires_ms)
    end
  end
end
save()
save_money()
return { renewed, resumed, recreated, over, now_ms }
