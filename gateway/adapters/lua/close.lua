-- Write META back where it changed; prolong the keys' time to live where it is time.
local function close(meta)
  local left_ms = meta[KEPT_UNTIL] - now_ms
  local is_prolonged = left_ms < KEPT_AGAIN_MS or left_ms > KEPT_S * 1000
  if is_prolonged then
    meta[KEPT_UNTIL], meta[META_CHANGED] = now_ms + KEPT_S * 1000, true
  end
  if meta[META_CHANGED] then
    redis.call('HSET', BOOK, '@', struct.pack(META, meta[1], meta[2], meta[3], meta[4], meta[5]))
  end
  if is_prolonged then
    redis.call('EXPIRE', BOOK, KEPT_S)
    redis.call('EXPIRE', DUE, KEPT_S)
  end
end
