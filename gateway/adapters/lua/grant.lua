-- The usual case of acquire.lua, without what makes that dear: a grant to a new request while
-- nothing is due, the limits are those that are known, the clock has not stepped back, and no money
-- is counted. Whatever else it finds, it leaves to what follows, and has changed nothing.
-- Reply: now (ms), then for each scope its HEAD from RUNNING on
local OFFER = '<c48c48c48c48ddddddddddddddd' -- ARGV[7], but for what only acquire.lua needs
repeat
  local call, read, write, sub, byte = redis.call, struct.unpack, struct.pack, string.sub, string.byte
  local rid, name_2, name_3, name_4 = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
  local found = call('HMGET', BOOK, '@', rid, '@tenant', name_2, name_3, name_4)
  local meta, old_1, old_2, old_3, old_4 = found[1], found[3], found[4], found[5], found[6]
  if found[2] or not (meta and old_1 and old_2 and old_3 and old_4) then
    break
  end
  local sequences_from, tokens_from, next_due, kept_until, tracked = read(META, meta)
  local left_ms = kept_until - now_ms
  if now_ms >= next_due or tracked == 1 or sequences_from > now_ms or tokens_from > now_ms
    or left_ms < KEPT_AGAIN_MS or left_ms > KEPT_S * 1000 then
    break
  end
  local limits_1, limits_2, limits_3, limits_4, most_1, tpm_1, rpm_1, most_2, tpm_2, rpm_2, most_3,
    tpm_3, rpm_3, most_4, tpm_4, rpm_4, sequences, need, ttl_ms = read(OFFER, ARGV[7])
  local idle_s, aged_s = now_s - SCOPE_KEEP_S, now_s - WINDOW_S
  -- each scope
  local head_N, new_N
  do
    local limits, running, used, requests, seen, oldest, newest, cell_tokens, cell_requests =
      read(HEAD_FROM_LIMITS, old_N)
    if limits ~= limits_N then
      break
    end
    local from, size, pushed = TAIL_AT, #old_N, ''
    if newest == now_s then
      if oldest <= aged_s or seen < now_s then
        break -- charged while the clock was behind it
      end
      cell_tokens, cell_requests = cell_tokens + need, cell_requests + 1
    else
      -- insert aged
      -- insert push
      cell_tokens, cell_requests = need, 1
    end
    running, used, requests = running + sequences, used + need, requests + 1
    if running > most_N or used > tpm_N or requests > rpm_N then
      break
    end
    head_N = write(HEAD_FROM_RUNNING, running, used, requests, seen, oldest, now_s, cell_tokens,
      cell_requests)
    if from > size then
      new_N = limits .. head_N .. pushed
    else
      new_N = limits .. head_N .. sub(old_N, from) .. pushed
    end
  end
  -- end each
  local stamp, expires_ms = write(TIMED, now_ms), now_ms + ttl_ms
  call('HSET', BOOK, rid, 'L' .. stamp .. ARGV[6], '@tenant', new_1, name_2, new_2, name_3, new_3,
    name_4, new_4)
  call('ZADD', DUE, expires_ms, rid)
  if expires_ms < next_due then
    call('HSET', BOOK, '@', write(META, sequences_from, tokens_from, expires_ms, kept_until, tracked))
  end
  do
    return stamp .. head_1 .. head_2 .. head_3 .. head_4
  end
until true
