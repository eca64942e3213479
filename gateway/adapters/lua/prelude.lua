-- Shared by every script of the ledger; joined in front of it. Executes gateway/domain/admission.py
-- and gateway/domain/window.py: change those first, the property test compares.
--
-- KEYS, all with the tenant as hash tag:
--   1 leases   zset  request id -> expiry, Unix ms
--   2 held     hash  request id -> "sequences|tokens|second|key id|model"
--   3 running  hash  scope -> sequences held
--   4 settled  zset  request id -> forgotten at, Unix ms
--   5 lapsed   zset  request id -> forgotten at, Unix ms (its record stays in `held`)
--   6 limits   hash  scope -> "version:max_sequences:tpm:rpm", -1 is no limit
--   7.. windows, one a scope: hash  w newest second, o oldest second that may hold a cell,
--              t and r sums of tokens and requests, "<second>" -> "tokens:requests",
--              b the newest second of a time that was stepped back from, if it was
-- ARGV[1] is the time in Unix ms, or empty for the server's own. All numbers are integers.
local LEASES, HELD, RUNNING, SETTLED, LAPSED, LIMITS = 1, 2, 3, 4, 5, 6
local WINDOWS = 6
local CELLS, STANDSTILL_S, WINDOW_TTL_S = 61, 5, 130
local LAPSED_KEEP_MS, SETTLED_KEEP_MS = 3600000, 60000

local now_ms
if ARGV[1] == '' then
  local t = redis.call('TIME')
  now_ms = t[1] * 1000 + math.floor(t[2] / 1000)
else
  now_ms = tonumber(ARGV[1])
end

local function scopes_of(key, model)
  local k, m = 'key:' .. key, 'model:' .. model
  return { 'tenant', k, m, k .. '/' .. m }
end

local function unpack_lease(packed)
  local sequences, tokens, second, key, model =
    string.match(packed, '^(%d+)|(%d+)|(%d+)|([^|]*)|(.*)$')
  return tonumber(sequences), tonumber(tokens), tonumber(second), key, model
end

local function count_running(key, model, sequences)
  for _, scope in ipairs(scopes_of(key, model)) do
    if redis.call('HINCRBY', KEYS[RUNNING], scope, sequences) <= 0 then
      redis.call('HDEL', KEYS[RUNNING], scope)
    end
  end
end

-- Leases that nobody renewed lapse; what is long over is forgotten. Returns how many lapsed.
local function reap()
  local gone = redis.call('ZRANGEBYSCORE', KEYS[LEASES], '-inf', now_ms)
  for _, rid in ipairs(gone) do
    local sequences, _, _, key, model = unpack_lease(redis.call('HGET', KEYS[HELD], rid))
    count_running(key, model, -sequences)
    redis.call('ZREM', KEYS[LEASES], rid)
    redis.call('ZADD', KEYS[LAPSED], now_ms + LAPSED_KEEP_MS, rid)
  end
  local old = redis.call('ZRANGEBYSCORE', KEYS[LAPSED], '-inf', now_ms)
  for _, rid in ipairs(old) do
    redis.call('HDEL', KEYS[HELD], rid)
    redis.call('ZREM', KEYS[LAPSED], rid)
  end
  redis.call('ZREMRANGEBYSCORE', KEYS[SETTLED], '-inf', now_ms)
  return #gone
end

-- Drop cells that are too old. Returns the second that charges go to, and both sums.
local function advance(window)
  local now_s = math.floor(now_ms / 1000)
  local v = redis.call('HMGET', window, 'w', 'o', 't', 'r', 'b')
  if not v[1] then
    return now_s, 0, 0
  end
  local newest, oldest, tokens, requests = tonumber(v[1]), tonumber(v[2]), tonumber(v[3]), tonumber(v[4])
  if newest > now_s then
    if newest - now_s <= STANDSTILL_S then
      now_s = newest
    else
      redis.call('DEL', window)
      redis.call('HSET', window, 'w', now_s, 'o', now_s, 't', tokens, 'r', requests,
        now_s, tokens .. ':' .. requests, 'b', math.max(newest, tonumber(v[5] or 0)))
      redis.call('EXPIRE', window, WINDOW_TTL_S)
      return now_s, tokens, requests
    end
  end
  local first = now_s - CELLS + 1
  if newest < first then
    redis.call('DEL', window)
    return now_s, 0, 0
  end
  if oldest < first then
    for s = oldest, first - 1 do
      local cell = redis.call('HGET', window, s)
      if cell then
        local t, r = string.match(cell, '^(%-?%d+):(%-?%d+)$')
        tokens, requests = tokens - t, requests - r
        redis.call('HDEL', window, s)
      end
    end
    redis.call('HSET', window, 'o', first, 't', tokens, 'r', requests)
  end
  return now_s, tokens, requests
end

-- Add to the cell of a second (negative: take back). `advance` came before in the same script.
local function charge(window, second, tokens, requests)
  local v = redis.call('HMGET', window, second, 'w', 'o', 't', 'r')
  local t, r = 0, 0
  if v[1] then
    t, r = string.match(v[1], '^(%-?%d+):(%-?%d+)$')
  end
  local newest = math.max(tonumber(v[2] or second), second)
  local oldest = math.min(tonumber(v[3] or second), second)
  redis.call('HSET', window, second, (t + tokens) .. ':' .. (r + requests), 'w', newest,
    'o', oldest, 't', (v[4] or 0) + tokens, 'r', (v[5] or 0) + requests)
  redis.call('EXPIRE', window, WINDOW_TTL_S)
end

local function refund(window, second, tokens, requests)
  local reached = tonumber(redis.call('HGET', window, 'b') or 0)
  if second > reached and redis.call('HEXISTS', window, second) == 1 then
    charge(window, second, -tokens, -requests)
  end
end

-- The newer of the limits offered and those known, kept for the next caller.
local function in_force(scope, version, sequences, tpm, rpm)
  local known = redis.call('HGET', KEYS[LIMITS], scope)
  if known then
    local v, s, t, r = string.match(known, '^(%-?%d+):(%-?%d+):(%-?%d+):(%-?%d+)$')
    v = tonumber(v)
    if v > version then
      return v, tonumber(s), tonumber(t), tonumber(r)
    end
    if v == version then
      return version, sequences, tpm, rpm
    end
  end
  redis.call('HSET', KEYS[LIMITS], scope,
    string.format('%.0f:%.0f:%.0f:%.0f', version, sequences, tpm, rpm))
  return version, sequences, tpm, rpm
end

-- Read the scopes' limits from ARGV[first]: scope, version, max_sequences, tpm, rpm each.
local function read_scopes(first)
  local scopes = {}
  for i = first, #ARGV, 5 do
    local version, sequences, tpm, rpm = in_force(ARGV[i], tonumber(ARGV[i + 1]),
      tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3]), tonumber(ARGV[i + 4]))
    local n = #scopes + 1
    local second, tokens, requests = advance(KEYS[WINDOWS + n])
    scopes[n] = { scope = ARGV[i], version = version, max_sequences = sequences, tpm = tpm,
      rpm = rpm, window = KEYS[WINDOWS + n], second = second, tokens = tokens,
      requests = requests, running = tonumber(redis.call('HGET', KEYS[RUNNING], ARGV[i]) or 0) }
  end
  return scopes
end

-- version, max_sequences, tpm, rpm, sequences, tokens, requests, reset_ms of each scope.
local function append_uses(reply, scopes)
  for _, s in ipairs(scopes) do
    local newest = redis.call('HGET', s.window, 'w')
    local reset = 0
    if newest then
      reset = math.max(0, (newest + CELLS) * 1000 - now_ms)
    end
    for _, value in ipairs({ s.version, s.max_sequences, s.tpm, s.rpm, s.running, s.tokens,
      s.requests, reset }) do
      reply[#reply + 1] = value
    end
  end
  return reply
end
