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
  local expired = redis.call('ZRANGEBYSCORE', LEASES, '-inf', now_ms, 'WITHSCORES', 'LIMIT', 0,
    AT_ONCE)
  local rids, lapsed, records, forgotten_ms = {}, {}, {}, now_ms + LAPSED_KEEP_MS
  if is_back then
    forgotten_ms = now_ms + ttl_ms
  end
  for i = 1, #expired, 2 do
    rids[#rids + 1] = expired[i]
    lapsed[i], lapsed[i + 1] = forgotten_ms, expired[i]
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
      records[i * 2] = pack_lease('L', 0, lease)
    else
      run(lease, list, -1)
      reserve(lease, true)
      records[i * 2] = pack_lease('P', forgotten_ms, lease)
    end
  end
  redis.call('HSET', BOOK, unpack(records))
  if is_back then
    redis.call('ZADD', LEASES, unpack(lapsed))
  else
    redis.call('ZREM', LEASES, unpack(rids))
    redis.call('ZADD', LAPSED, unpack(lapsed))
  end
  save_shelf(meta)
end

-- Remove lapsed leases, settlements and idle scopes that are past their time.
local function forget(zset)
  local gone, again = {}, {}
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', zset, '-inf', now_ms, 'LIMIT', 0, AT_ONCE)) do
    local record = string.sub(member, 1, 1) == '@' and redis.call('HGET', BOOK, member)
    local seen
    if record then
      local _, _, _, _, _, _, running, _, _, _, seen_s = struct.unpack(HEAD, record)
      seen = running > 0 and now_s or seen_s
    end
    if record and seen > now_s - SCOPE_KEEP_S then
      again[#again + 1] = (seen + SCOPE_KEEP_S) * 1000
      again[#again + 1] = member
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

local function first_of(zset)
  return tonumber(redis.call('ZRANGE', zset, 0, 0, 'WITHSCORES')[2])
end

if first_of(LEASES) <= now_ms then
  lapse()
end
if first_of(LAPSED) <= now_ms then
  forget(LAPSED)
end
if first_of(FORGET) <= now_ms then
  forget(FORGET)
end
local first = first_of(LEASES)
if is_back and first > now_ms then
  redis.call('HDEL', BOOK, '!')
  reached_ms = first
  meta[SEQUENCES_FROM] = math.max(meta[SEQUENCES_FROM], sequences_from)
  meta[TOKENS_FROM] = math.max(meta[TOKENS_FROM], tokens_from)
end
meta[NEXT_DUE] = math.min(first, reached_ms, first_of(LAPSED), first_of(FORGET))
redis.call('HSET', BOOK, '@', struct.pack(META, meta[1], meta[2], meta[3], meta[4], meta[5]))
return first <= now_ms
