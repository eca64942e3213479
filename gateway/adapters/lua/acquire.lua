-- Grant a lease and a reservation in all four scopes, or nothing (admission.acquire).
-- ARGV: 1 now, 2 request id, 3 time to live ms, 4 sequences, 5 tokens, 6 floor tokens,
--       7 key id, 8 model, then for each scope: scope, version, max_sequences, tpm, rpm (-1: none)
-- Reply: granted {1, reserved tokens, second, now, uses…}
--        refused {0, kind (1 sequences, 2 requests, 3 tokens), scope's index, limit, used, need,
--                 retry after ms (-1: never), uses…}
local rid, ttl_ms = ARGV[2], tonumber(ARGV[3])
local sequences, tokens, floor = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local SEQUENCES_RETRY_MS = 1000
reap()
local scopes = read_scopes(9)
if redis.call('ZSCORE', KEYS[LEASES], rid) then
  local _, reserved, second = unpack_lease(redis.call('HGET', KEYS[HELD], rid))
  return append_uses({ 1, reserved, second, now_ms }, scopes)
end
if redis.call('ZSCORE', KEYS[SETTLED], rid) or redis.call('ZSCORE', KEYS[LAPSED], rid) then
  return append_uses({ 0, 2, 1, 0, 0, 1, SEQUENCES_RETRY_MS }, scopes)
end

for i, s in ipairs(scopes) do
  if s.max_sequences >= 0 and sequences > s.max_sequences then
    return append_uses({ 0, 1, i, s.max_sequences, 0, sequences, -1 }, scopes)
  end
  if s.rpm >= 0 and 1 > s.rpm then
    return append_uses({ 0, 2, i, s.rpm, 0, 1, -1 }, scopes)
  end
  if s.tpm >= 0 and floor > s.tpm then
    return append_uses({ 0, 3, i, s.tpm, 0, floor, -1 }, scopes)
  end
end

local function wait_ms(s, excess_tokens, excess_requests)
  local v = redis.call('HMGET', s.window, 'o', 'w')
  local last = math.floor(now_ms / 1000)
  if v[1] then
    local freed_tokens, freed_requests = 0, 0
    local from, to = tonumber(v[1]), tonumber(v[2])
    local names = {}
    for second = from, to do
      names[#names + 1] = string.format('%.0f', second)
    end
    local cells = redis.call('HMGET', s.window, unpack(names))
    for i, cell in ipairs(cells) do
      if cell then
        local t, r = string.match(cell, '^(%-?%d+):(%-?%d+)$')
        freed_tokens, freed_requests = freed_tokens + t, freed_requests + r
        last = from + i - 1
        if freed_tokens >= excess_tokens and freed_requests >= excess_requests then
          break
        end
      end
    end
  end
  return math.max(1, (last + CELLS) * 1000 - now_ms)
end

for i, s in ipairs(scopes) do
  if s.max_sequences >= 0 and s.running + sequences > s.max_sequences then
    return append_uses(
      { 0, 1, i, s.max_sequences, s.running, sequences, SEQUENCES_RETRY_MS }, scopes)
  end
end
for i, s in ipairs(scopes) do
  if s.rpm >= 0 and s.requests + 1 > s.rpm then
    return append_uses(
      { 0, 2, i, s.rpm, s.requests, 1, wait_ms(s, 0, s.requests + 1 - s.rpm) }, scopes)
  end
end
local need = tokens
for _, s in ipairs(scopes) do
  if s.tpm >= 0 and s.tpm < need then
    need = s.tpm
  end
end
for i, s in ipairs(scopes) do
  if s.tpm >= 0 and s.tokens + need > s.tpm then
    return append_uses(
      { 0, 3, i, s.tpm, s.tokens, need, wait_ms(s, s.tokens + need - s.tpm, 0) }, scopes)
  end
end

local second = 0
for _, s in ipairs(scopes) do
  second = math.max(second, s.second)
end
for _, s in ipairs(scopes) do
  charge(s.window, second, need, 1)
  s.tokens, s.requests, s.running = s.tokens + need, s.requests + 1, s.running + sequences
end
redis.call('ZADD', KEYS[LEASES], now_ms + ttl_ms, rid)
redis.call('HSET', KEYS[HELD], rid,
  string.format('%.0f|%.0f|%.0f|%s|%s', sequences, need, second, ARGV[7], ARGV[8]))
count_running(ARGV[7], ARGV[8], sequences)
return append_uses({ 1, need, second, now_ms }, scopes)
