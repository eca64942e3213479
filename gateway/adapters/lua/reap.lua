-- What time alone changes (admission_state.reap), AT_ONCE of it at a time. Joined into every script
-- as the body of a function of its own, `reap(meta)`: true where leases are left that are due.
local AT_ONCE = 100

-- Whether the clock is back at a time that it had stepped back from: then the leases that it jumped
-- over are kept for one lease time.
local is_back, reached_ms, ttl_ms, sequences_from, tokens_from = false, tonumber(NEVER), 0, 0, 0
local stepped = redis.call('HGET', BOOK, '!')
if stepped then
  reached_ms, ttl_ms, sequences_from, tokens_from = struct.unpack(STEPPED, stepped)
  is_back = now_ms >= reached_ms
end

-- Leases that nobody renewed lapse, the first to expire first.
local function lapse()
  local expired = redis.call('ZRANGEBYSCORE', DUE, '-inf', now_ms, 'WITHSCORES', 'LIMIT', 0,
    AT_ONCE)
  local rids, lapsed, records, forgotten_ms = {}, {}, {}, now_ms + LAPSED_KEEP_MS
  if is_back then
    forgotten_ms = now_ms + ttl_ms
  end
  for i = 1, #expired, 2 do
    rids[#rids + 1] = expired[i]
    lapsed[i], lapsed[i + 1] = is_back and forgotten_ms or LAPSED + forgotten_ms, expired[i]
  end
  local found = redis.call('HMGET', BOOK, unpack(rids))
  for i, rid in ipairs(rids) do
    local lease = parse_lease(found[i])
    local list = scopes_of(lease)
    if (lease.second + WINDOW_S) * 1000 >= tonumber(expired[i * 2]) then
      lease.second = charge_anew(list, lease.second, lease.tokens)
    end
    records[i * 2 - 1] = rid
    if is_back then
      records[i * 2] = pack_lease('L', lease)
    else
      run(lease, list, -1)
      reserve(lease, true)
      records[i * 2] = pack_lease('P' .. struct.pack(TIMED, forgotten_ms), lease)
    end
  end
  redis.call('HSET', BOOK, unpack(records))
  redis.call('ZADD', DUE, unpack(lapsed))
  save_shelf(meta)
end

-- Remove lapsed leases, settlements and idle scopes that are past their time.
local function forget(band)
  local gone, again = {}, {}
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', DUE, band, band + now_ms, 'LIMIT', 0,
    AT_ONCE)) do
    local record = string.sub(member, 1, 1) == '@' and redis.call('HGET', BOOK, member)
    local seen
    if record then
      local running, _, _, seen_s = struct.unpack(HEAD_FROM_RUNNING, record, LIMITS_SIZE + 1)
      seen = running > 0 and now_s or seen_s
    end
    if record and seen > now_s - SCOPE_KEEP_S then
      again[#again + 1] = band + (seen + SCOPE_KEEP_S) * 1000
      again[#again + 1] = member
    else
      gone[#gone + 1] = member
    end
  end
  if #gone > 0 then
    redis.call('HDEL', BOOK, unpack(gone))
    redis.call('ZREM', DUE, unpack(gone))
  end
  if #again > 0 then
    redis.call('ZADD', DUE, unpack(again))
  end
end

-- When the first of them is due, or some time beyond all of them.
local function first_of(band)
  local first = redis.call('ZRANGEBYSCORE', DUE, band, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  return tonumber(first[2] or NEVER) - band
end

if first_of(0) <= now_ms then
  lapse()
end
if first_of(LAPSED) <= now_ms then
  forget(LAPSED)
end
if first_of(FORGET) <= now_ms then
  forget(FORGET)
end
local first = first_of(0)
if is_back and first > now_ms then
  redis.call('HDEL', BOOK, '!')
  reached_ms = first
  meta[SEQUENCES_FROM] = math.max(meta[SEQUENCES_FROM], sequences_from)
  meta[TOKENS_FROM] = math.max(meta[TOKENS_FROM], tokens_from)
end
meta[NEXT_DUE] = math.min(first, reached_ms, first_of(LAPSED), first_of(FORGET))
redis.call('HSET', BOOK, '@', struct.pack(META, meta[1], meta[2], meta[3], meta[4], meta[5]))
return first <= now_ms
