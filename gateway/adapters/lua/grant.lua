-- The usual case of acquire.lua, without what makes that dear: a grant to a new request while
-- nothing is due, the limits are those that are known, the clock has not stepped back, and no money
-- is counted. Whatever else it finds, it leaves to what follows, and has changed nothing.
-- Reply: GRANTED: reserved tokens, second, now, ms until the windows are empty; then for each scope
--        running, tokens, requests
local GRANTED = '<dddddddddddddddd'
repeat
  local call, read, write, sub = redis.call, struct.unpack, struct.pack, string.sub
  local name_2, name_3, name_4 = ARGV[3], ARGV[4], ARGV[5]
  local found = call('HMGET', BOOK, '@', ARGV[2], '@tenant', name_2, name_3, name_4)
  local meta, old_1, old_2, old_3, old_4 = found[1], found[3], found[4], found[5], found[6]
  if not (meta and old_1 and old_2 and old_3 and old_4) or found[2] then
    break
  end
  local sequences_from, tokens_from, next_due, kept_until, tracked = read(META, meta)
  local sequences, tokens, floor, ttl_ms, cost, cost_pico, need = read(DEMAND, ARGV[7],
    DEMAND_AT)
  local expires_ms, left_ms = now_ms + ttl_ms, kept_until - now_ms
  if now_ms >= next_due or tracked == 1 or sequences_from > now_ms
    or tokens_from > now_ms or left_ms < KEPT_AGAIN_MS or left_ms > KEPT_S * 1000 then
    break
  end
  -- each scope
  local running_N, used_N, requests_N, new_N
  do
    local version, most, tpm, rpm, budget, budget_pico, running, used, requests, reached, seen,
      from = read(HEAD, old_N)
    local offered, offered_most, offered_tpm, offered_rpm, offered_budget = read(LIMITS, ARGV[7],
      N * LIMITS_SIZE - 47)
    if version ~= offered or most ~= offered_most or tpm ~= offered_tpm or rpm ~= offered_rpm
      or budget ~= -1 or offered_budget ~= -1 then
      break
    end
    -- insert aged
    if (most >= 0 and running + sequences > most) or (rpm >= 0 and requests + 1 > rpm)
      or (tpm >= 0 and (used + need > tpm or floor > tpm)) then
      break
    end
    running_N, used_N, requests_N = running + sequences, used + need, requests + 1
    if newest == now_s then
      size, cell_tokens, cell_requests = size - CELL_SIZE, cell_tokens + need, cell_requests + 1
    else
      cell_tokens, cell_requests = need, 1
    end
    if from > size then
      new_N = write(WITH_CELL, old_N, running_N, used_N, requests_N, 0, seen, now_s, cell_tokens,
        cell_requests)
    else
      new_N = write(WITHOUT, old_N, running_N, used_N, requests_N, 0, seen) .. sub(old_N, from, size)
        .. write(CELL, now_s, cell_tokens, cell_requests)
    end
  end
  -- end each
  local rid = ARGV[2]
  call('HSET', BOOK, rid, write(HELD, 'L', 0, sequences, need, now_s, cost, cost_pico, ARGV[6]),
    '@tenant', new_1, name_2, new_2, name_3, new_3, name_4, new_4)
  call('ZADD', LEASES, expires_ms, rid)
  if expires_ms < next_due then
    call('HSET', BOOK, '@', write(META, sequences_from, tokens_from, expires_ms, kept_until, tracked))
  end
  do
    return write(GRANTED, need, now_s, now_ms, (now_s + WINDOW_S) * 1000 - now_ms, running_1, used_1,
      requests_1, running_2, used_2, requests_2, running_3, used_3, requests_3, running_4, used_4,
      requests_4)
  end
until true
