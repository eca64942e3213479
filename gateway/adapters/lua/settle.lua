-- End a lease: sequences free, actual tokens in place of the reserved ones (admission.settle).
-- ARGV: 1 now, 2 request id, 3 actual tokens, 4 whether it ran (1 or 0)
-- Reply: 1 live, 2 lapsed, 3 repeated, 4 unknown
local rid, actual, ran = ARGV[2], tonumber(ARGV[3]), ARGV[4] == '1'
reap()
if redis.call('ZSCORE', KEYS[SETTLED], rid) then
  return 3
end
redis.call('ZADD', KEYS[SETTLED], now_ms + SETTLED_KEEP_MS, rid)
redis.call('PEXPIRE', KEYS[SETTLED], SETTLED_KEEP_MS)
local packed = redis.call('HGET', KEYS[HELD], rid)
if not packed then
  return 4
end
local sequences, tokens, second, key, model = unpack_lease(packed)
local found = 2
if redis.call('ZREM', KEYS[LEASES], rid) == 1 then
  found = 1
  count_running(key, model, -sequences)
else
  redis.call('ZREM', KEYS[LAPSED], rid)
end
redis.call('HDEL', KEYS[HELD], rid)
local requests = 1
if ran then
  requests = 0
end
for i = 1, 4 do
  local window = KEYS[WINDOWS + i]
  local now_s = advance(window)
  if actual <= tokens then
    refund(window, second, tokens - actual, requests)
  else
    refund(window, second, 0, requests)
    charge(window, now_s, actual - tokens, 0)
  end
end
return found
