-- After a step back of the clock, let leases and a pause last no longer than if they began now
-- (admission_state.set_right).
local STEP_MS = 60000

local function set_right(meta, ttl_ms)
  local window_ms = WINDOW_S * 1000
  local sequences_from, tokens_from = meta[SEQUENCES_FROM], meta[TOKENS_FROM]
  local reached_ms = math.max(sequences_from - ttl_ms, tokens_from - window_ms)
  local last = redis.call('ZREVRANGEBYSCORE', DUE, LIVE_LAST, '-inf', 'WITHSCORES', 'LIMIT', 0, 1)
  if last[2] then
    reached_ms = math.max(reached_ms, tonumber(last[2]) - ttl_ms)
  end
  if reached_ms <= now_ms + STEP_MS then
    return
  end
  local expires_ms, most = now_ms + ttl_ms, now_ms + window_ms
  meta[SEQUENCES_FROM] = math.min(sequences_from, expires_ms)
  meta[TOKENS_FROM], meta[META_CHANGED] = math.min(tokens_from, most), true
  local before = redis.call('HGET', BOOK, '!')
  if before then
    local reached, _, sequences, tokens = struct.unpack(STEPPED, before)
    reached_ms = math.max(reached_ms, reached)
    sequences_from = math.max(sequences_from, sequences)
    tokens_from = math.max(tokens_from, tokens)
  end
  redis.call('HSET', BOOK, '!', struct.pack(STEPPED, reached_ms, ttl_ms, sequences_from, tokens_from))
  for _, rid in ipairs(redis.call('ZRANGEBYSCORE', DUE, '(' .. expires_ms, LIVE_LAST)) do
    redis.call('ZADD', DUE, expires_ms, rid)
  end
  due(meta, expires_ms)
  due(meta, reached_ms)
end
