-- What time alone changes (admission_state.reap), a part of it at a time.
local AT_ONCE = 100

local function first_score(zset)
  return tonumber(redis.call('ZRANGE', zset, 0, 0, 'WITHSCORES')[2])
end

-- Leases that nobody renewed lapse, the first to expire first.
local function lapse()
  local due = redis.call('ZRANGEBYSCORE', LEASES, '-inf', now_ms, 'WITHSCORES', 'LIMIT', 0, AT_ONCE)
  local rids, lapsed, forgotten = {}, {}, now_ms + LAPSED_KEEP_MS
  for i = 1, #due, 2 do
    rids[#rids + 1] = due[i]
    lapsed[i], lapsed[i + 1] = forgotten, due[i]
  end
  local records = redis.call('HMGET', BOOK, unpack(rids))
  for i, rid in ipairs(rids) do
    local lease = parse_lease(records[i])
    local list = scopes_of(lease)
    if (lease.second + CELLS) * 1000 >= tonumber(due[i * 2]) then
      charge_anew(lease, list)
    end
    for _, s in ipairs(list) do
      s.running = s.running - lease.sequences
      touch(s)
    end
    release(lease, list)
    written[rid] = pack_lease('P', lease, forgotten)
  end
  redis.call('ZREM', LEASES, unpack(rids))
  redis.call('ZADD', LAPSED, unpack(lapsed))
end

-- Remove lapsed leases, settlements and idle scopes that are past their time.
local function forget(zset)
  local over = redis.call('ZRANGEBYSCORE', zset, '-inf', now_ms, 'LIMIT', 0, AT_ONCE)
  local gone, again = {}, {}
  for _, member in ipairs(over) do
    local name = string.match(member, '^@(.*)$')
    local record = name and redis.call('HGET', BOOK, member)
    if record then
      local _, _, _, _, _, _, running, _, _, _, seen = struct.unpack(HEAD, record)
      if running > 0 then
        seen = now_s
      end
      if seen > now_s - SCOPE_KEEP_S then
        again[#again + 1] = (seen + SCOPE_KEEP_S) * 1000
        again[#again + 1] = member
      else
        gone[#gone + 1] = member
      end
    else
      gone[#gone + 1] = member
    end
  end
  if #gone > 0 then
    redis.call('HDEL', BOOK, unpack(gone))
    redis.call('ZREM', zset, unpack(gone))
  end
  if #again > 0 then
    redis.call('ZADD', zset, unpack(again))
  end
end

-- Returns whether leases are left that are due: then the script must be called again.
local function reap()
  if now_ms < next_due then
    return false
  end
  local first = first_score(LEASES)
  if first <= now_ms then
    lapse()
    first = first_score(LEASES)
  end
  for _, zset in ipairs({ LAPSED, FORGET }) do
    local over = first_score(zset)
    if over <= now_ms then
      forget(zset)
      over = first_score(zset)
    end
    first = math.min(first, over)
  end
  if next_due ~= first then
    next_due, meta_changed = first, true
  end
  if first <= now_ms and first_score(LEASES) <= now_ms then
    save()
    save_money()
    return true
  end
  return false
end

-- Hold a lease until it expires. `before` is the record that the request had, if it had one.
local function hold(rid, before, lease, expires_ms)
  if before then
    redis.call('ZREM', LAPSED, rid)
    redis.call('ZREM', FORGET, rid)
  end
  written[rid] = pack_lease('L', lease, 0)
  redis.call('ZADD', LEASES, expires_ms, rid)
  due_at(expires_ms)
end

-- 15 doubles a scope: version, sequences, tpm, rpm, budget (units, pico); running, tokens, requests,
-- ms until its window is empty; whether the month is known, spent and reserved (units, pico).
local function uses_of(list, month)
  local m = months[month]
  local packed = {}
  for i = 1, #list do
    local s = list[i]
    local newest = newest_of(s)
    local reset = newest and math.max(0, (newest + CELLS) * 1000 - now_ms) or 0
    local known, spent, spent_pico, reserved, reserved_pico = 0, 0, 0, 0, 0
    if m and m.known then
      local f = fund_of(month, s.name)
      known, spent, spent_pico, reserved, reserved_pico =
        1, f.spent, f.spent_pico, f.reserved, f.reserved_pico
    end
    packed[i] = s.limits .. struct.pack('<ddddddddd', s.running, s.tokens, s.requests, reset,
      known, spent, spent_pico, reserved, reserved_pico)
  end
  return table.concat(packed)
end
