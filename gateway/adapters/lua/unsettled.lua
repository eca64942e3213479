-- Requests whose money the store accounts for itself (admission_leases.unsettled_or_recent).
-- ARGV: 1 now
-- Reply: {1, request id…}
local found, meta = open()
if not found then
  return meta
end
close(meta)
local reply = redis.call('HKEYS', RECENT)
table.insert(reply, 1, 1)
for _, rid in ipairs(redis.call('ZRANGEBYSCORE', DUE, '-inf', LAPSED_LAST)) do
  reply[#reply + 1] = rid
end
return reply
