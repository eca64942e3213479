-- Prolong the leases that a gateway holds; take up again what lapsed or was lost (admission.renew).
-- ARGV: 1 now, 2 time to live ms, then for each lease: request id, its packed record
-- Reply: {renewed, resumed, recreated, over, now}
local ttl_ms = tonumber(ARGV[2])
local renewed, resumed, recreated, over = 0, 0, 0, 0
reap()
for i = 3, #ARGV, 2 do
  local rid = ARGV[i]
  if redis.call('ZSCORE', KEYS[SETTLED], rid) then
    over = over + 1
  elseif redis.call('ZSCORE', KEYS[LEASES], rid) then
    renewed = renewed + 1
    redis.call('ZADD', KEYS[LEASES], now_ms + ttl_ms, rid)
  else
    local packed = redis.call('HGET', KEYS[HELD], rid)
    if packed then
      resumed = resumed + 1
      redis.call('ZREM', KEYS[LAPSED], rid)
    else
      recreated = recreated + 1
      -- Its charge was lost with it: second 0, so that nothing is refunded to what others charged.
      local sequences, tokens, _, key, model = unpack_lease(ARGV[i + 1])
      packed = string.format('%.0f|%.0f|0|%s|%s', sequences, tokens, key, model)
      redis.call('HSET', KEYS[HELD], rid, packed)
    end
    local sequences, _, _, key, model = unpack_lease(packed)
    count_running(key, model, sequences)
    redis.call('ZADD', KEYS[LEASES], now_ms + ttl_ms, rid)
  end
end
return { renewed, resumed, recreated, over, now_ms }
