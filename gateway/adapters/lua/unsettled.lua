-- Requests whose money the store accounts for itself (admission_leases.unsettled_or_recent).
-- ARGV: 1 now
-- Reply: {1, request id…}
if not open({}, {}) then
  return UNBORN
end
if reap() then
  return AGAIN
end
save()
save_money()
local reply = redis.call('HKEYS', RECENT)
table.insert(reply, 1, 1)
for _, zset in ipairs({ LEASES, LAPSED }) do
  local rids = redis.call('ZRANGEBYSCORE', zset, '(' .. string.format('%.0f', now_ms), '(' .. NEVER)
  for i = 1, #rids do
    reply[#reply + 1] = rids[i]
  end
end
return reply
