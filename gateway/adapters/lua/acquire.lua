-- Grant a lease and a reservation in all four scopes, or nothing (admission.acquire).
-- ARGV: 1 now, 2 request id, 3 '@' key scope, 4 '@' model scope, 5 '@' key and model scope,
--       6 LEASE as it is granted where the limits offered are in force, but for when it is charged,
--       and month|key|model, the month may be empty; 7 the four LIMITS, the widest scope first, then
--       for each the most sequences, tokens and requests in the usual case (NEVER where it has no such
--       limit, -1 where it has what is not usual), DEMAND
-- Reply: granted, in the usual case as grant.lua, else {1, reserved tokens, second, now, uses…}
--        refused {0, kind (1 sequences, 2 requests, 3 tokens, 4 budget), scope's index, limit, used,
--                 need, retry after ms (-1: never), uses…}; of a budget the amounts are in the uses
--        paused {2, until, now}; the month's money is not known {3}
-- uses…: for each scope running, tokens, requests, ms until its window is empty; then for each its
--        FUND, or nothing where the month is not known; then for each its LIMITS, or nothing where
--        they are those that were offered
local DEMAND = '<ddddd' -- sequences, tokens to reserve if the limits offered are in force, time to
--                         live ms, tokens, floor tokens
local DEMAND_AT = 289
local COST = '<dd' -- in ARGV[6]
local COST_AT = 17
local MONTH_AT = 33
local USES = '<dddddddddddddddd'
local SEQUENCES_RETRY_MS = 1000
local rid, month = ARGV[2], string.match(ARGV[6], '^[^|]*', MONTH_AT)
local found, meta = open(rid, '@tenant', ARGV[3], ARGV[4], ARGV[5])
if not found then
  return meta
end
local sequences, _, ttl_ms, tokens, floor = struct.unpack(DEMAND, ARGV[7], DEMAND_AT)
local cost, cost_pico = struct.unpack(COST, ARGV[6], COST_AT)
local list = { parse(found[3]), parse(found[4]), parse(found[5]), parse(found[6]) }
local second, is_newer = 0, false
for i = 1, 4 do
  local s = list[i]
  is_newer = offer(s, ARGV[7], (i - 1) * LIMITS_SIZE + 1) or is_newer
  local now = advance(s)
  if now > second then
    second = now
  end
end
local funds = false
local is_known = false
if meta[TRACKED] == 1 and month ~= '' then
  funds = redis.call('HMGET', MONEY, month, month .. '@tenant', month .. ARGV[3],
    month .. ARGV[4], month .. ARGV[5])
  if funds[1] then
    local _, known = struct.unpack(MONTH, funds[1])
    is_known = known == 1
  else
    funds = false
  end
end

local function finish(reply)
  local a, b, c, d = list[1], list[2], list[3], list[4]
  save('@tenant', a, meta)
  save(ARGV[3], b, meta)
  save(ARGV[4], c, meta)
  save(ARGV[5], d, meta)
  close(meta)
  local money, limits = '', ''
  if is_known then
    for i = 2, 5 do
      money = money .. (funds[i] or struct.pack(FUND, 0, 0, 0, 0))
    end
  end
  if is_newer then
    for i = 1, 4 do
      limits = limits .. string.sub(packed(list[i]), 1, LIMITS_SIZE)
    end
  end
  local n = #reply
  reply[n + 1] = struct.pack(USES,
    a[RUNNING], a[TOKENS], a[REQUESTS], reset_ms(a), b[RUNNING], b[TOKENS], b[REQUESTS],
    reset_ms(b), c[RUNNING], c[TOKENS], c[REQUESTS], reset_ms(c), d[RUNNING], d[TOKENS],
    d[REQUESTS], reset_ms(d))
  reply[n + 2], reply[n + 3] = money, limits
  return reply
end

local state = state_of(found[2])
if state == 'L' then
  local charged_ms, _, reserved = struct.unpack(LEASE, found[2], 2)
  return finish({ 1, reserved, (charged_ms - charged_ms % 1000) / 1000, now_ms })
elseif state then
  return finish({ 0, 2, 1, 0, 0, 1, SEQUENCES_RETRY_MS })
end

local complete_ms, need = 0, tokens
for i = 1, 4 do
  local s = list[i]
  if s[SEQUENCES] >= 0 then
    if sequences > s[SEQUENCES] then
      return finish({ 0, 1, i, s[SEQUENCES], 0, sequences, -1 })
    end
    complete_ms = math.max(complete_ms, meta[SEQUENCES_FROM])
  end
  if s[RPM] >= 0 then
    if s[RPM] < 1 then
      return finish({ 0, 2, i, s[RPM], 0, 1, -1 })
    end
    complete_ms = math.max(complete_ms, meta[TOKENS_FROM])
  end
  if s[TPM] >= 0 then
    if floor > s[TPM] then
      return finish({ 0, 3, i, s[TPM], 0, floor, -1 })
    end
    complete_ms = math.max(complete_ms, meta[TOKENS_FROM])
    need = math.min(need, s[TPM])
  end
end
if complete_ms > now_ms then
  set_right(meta, ttl_ms)
  complete_ms = 0
  for i = 1, 4 do
    local s = list[i]
    if s[SEQUENCES] >= 0 then
      complete_ms = math.max(complete_ms, meta[SEQUENCES_FROM])
    end
    if s[RPM] >= 0 or s[TPM] >= 0 then
      complete_ms = math.max(complete_ms, meta[TOKENS_FROM])
    end
  end
  finish({})
  return { 2, complete_ms, now_ms }
end
for i = 1, 4 do
  local s = list[i]
  if s[SEQUENCES] >= 0 and s[RUNNING] + sequences > s[SEQUENCES] then
    set_right(meta, ttl_ms)
    return finish({ 0, 1, i, s[SEQUENCES], s[RUNNING], sequences, SEQUENCES_RETRY_MS })
  end
end
for i = 1, 4 do
  local s = list[i]
  if s[RPM] >= 0 and s[REQUESTS] + 1 > s[RPM] then
    local wait = wait_ms(s, 0, s[REQUESTS] + 1 - s[RPM])
    return finish({ 0, 2, i, s[RPM], s[REQUESTS], 1, wait })
  end
end
for i = 1, 4 do
  local s = list[i]
  if s[TPM] >= 0 and s[TOKENS] + need > s[TPM] then
    local wait = wait_ms(s, s[TOKENS] + need - s[TPM], 0)
    return finish({ 0, 3, i, s[TPM], s[TOKENS], need, wait })
  end
end
for i = 1, 4 do
  local s = list[i]
  if s[BUDGET] >= 0 then
    if not is_known then
      finish({})
      return { 3 }
    end
    local units, pico = cost, cost_pico
    if funds[i + 1] then
      local spent, spent_pico, reserved, reserved_pico = struct.unpack(FUND, funds[i + 1])
      units, pico = add(units, pico, spent, spent_pico)
      units, pico = add(units, pico, reserved, reserved_pico)
    end
    if units > s[BUDGET] or (units == s[BUDGET] and pico > s[BUDGET_PICO]) then
      set_right(meta, ttl_ms)
      return finish({ 0, 4, i, 0, 0, 0, -1 })
    end
  end
end

for i = 1, 4 do
  local s = list[i]
  charge(s, second, need, 1)
  s[RUNNING] = s[RUNNING] + sequences
end
if funds and (cost > 0 or cost_pico > 0) then
  for i = 2, 5 do
    local spent, spent_pico, reserved, reserved_pico = 0, 0, 0, 0
    if funds[i] then
      spent, spent_pico, reserved, reserved_pico = struct.unpack(FUND, funds[i])
    end
    reserved, reserved_pico = add(reserved, reserved_pico, cost, cost_pico)
    funds[i] = struct.pack(FUND, spent, spent_pico, reserved, reserved_pico)
  end
  redis.call('HSET', MONEY, month .. '@tenant', funds[2], month .. ARGV[3], funds[3],
    month .. ARGV[4], funds[4], month .. ARGV[5], funds[5])
end
local lease = 'L' .. struct.pack(LEASE, second * 1000, sequences, need, cost, cost_pico)
  .. string.sub(ARGV[6], MONTH_AT)
save_all(rid, lease, list)
redis.call('ZADD', DUE, now_ms + ttl_ms, rid)
due(meta, now_ms + ttl_ms)
return finish({ 1, need, second, now_ms })
