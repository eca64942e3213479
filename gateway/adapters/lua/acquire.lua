-- Grant a lease and a reservation in all four scopes, or nothing (admission.acquire).
-- ARGV: 1 now, 2 request id, 3 time to live ms, 4 key id, 5 model, 6 month or empty,
--       7 demand, 5 doubles: sequences, tokens, floor tokens, cost (units, pico)
--       8 limits of the four scopes
-- Reply: granted {1, reserved tokens, second, now, uses}
--        refused {0, kind (1 sequences, 2 requests, 3 tokens, 4 budget), scope's index, limit, used,
--                 need, retry after ms (-1: never), uses}; of a budget the amounts are in the uses
--        paused {2, until, now}; the month's money is not known {3}
local rid, key, model, month = ARGV[2], ARGV[4], ARGV[5], ARGV[6]
local SEQUENCES_RETRY_MS = 1000
local names = { scope_names(key, model) }
local records = open(names, { rid })
if not records then
  return UNBORN
end
if reap() then
  return AGAIN
end
local sequences, tokens, floor, cost, cost_pico = struct.unpack('<ddddd', ARGV[7])
local list = {}
local second = 0
for i = 1, 4 do
  local s = scope_of(names[i])
  list[i] = s
  offer(s, string.sub(ARGV[8], (i - 1) * LIMITS_SIZE + 1, i * LIMITS_SIZE))
  second = math.max(second, advance(s))
end
open_month(month, names)

local function refused(kind, index, limit, used, need, retry_ms)
  save()
  save_money()
  return { 0, kind, index, limit, used, need, retry_ms, uses_of(list, month) }
end

local record = written[rid] or records[1]
local state = state_of(record)
if state == 'L' then
  save()
  save_money()
  local lease = parse_lease(record)
  return { 1, lease.tokens, lease.second, now_ms, uses_of(list, month) }
elseif state then
  return refused(2, 1, 0, 0, 1, SEQUENCES_RETRY_MS)
end

local has_sequences, has_window = false, false
for i, s in ipairs(list) do
  if s.sequences >= 0 and sequences > s.sequences then
    return refused(1, i, s.sequences, 0, sequences, -1)
  end
  if s.rpm >= 0 and 1 > s.rpm then
    return refused(2, i, s.rpm, 0, 1, -1)
  end
  if s.tpm >= 0 and floor > s.tpm then
    return refused(3, i, s.tpm, 0, floor, -1)
  end
  has_sequences = has_sequences or s.sequences >= 0
  has_window = has_window or s.tpm >= 0 or s.rpm >= 0
end

local until_ms = 0
if has_sequences then
  until_ms = sequences_from
end
if has_window then
  until_ms = math.max(until_ms, tokens_from)
end
if until_ms > now_ms then
  save()
  save_money()
  return { 2, until_ms, now_ms }
end

local need = tokens
for i, s in ipairs(list) do
  if s.sequences >= 0 and s.running + sequences > s.sequences then
    return refused(1, i, s.sequences, s.running, sequences, SEQUENCES_RETRY_MS)
  end
  if s.tpm >= 0 and s.tpm < need then
    need = s.tpm
  end
end
for i, s in ipairs(list) do
  if s.rpm >= 0 and s.requests + 1 > s.rpm then
    return refused(2, i, s.rpm, s.requests, 1, wait_ms(s, 0, s.requests + 1 - s.rpm))
  end
end
for i, s in ipairs(list) do
  if s.tpm >= 0 and s.tokens + need > s.tpm then
    return refused(3, i, s.tpm, s.tokens, need, wait_ms(s, s.tokens + need - s.tpm, 0))
  end
end
for i, s in ipairs(list) do
  if s.budget >= 0 then
    local m = months[month]
    if not m or not m.known then
      save()
      save_money()
      return { 3 }
    end
    local f = fund_of(month, s.name)
    local units, pico = add(f.spent, f.spent_pico, f.reserved, f.reserved_pico)
    units, pico = add(units, pico, cost, cost_pico)
    if exceeds(units, pico, s.budget, s.budget_pico) then
      return refused(4, i, 0, 0, 0, -1)
    end
  end
end

local lease = { sequences = sequences, tokens = need, second = second, cost = cost,
  cost_pico = cost_pico, month = month, key = key, model = model }
for i = 1, 4 do
  local s = list[i]
  charge(s, second, need, 1)
  s.running = s.running + sequences
end
reserve(lease, list)
hold(rid, record, lease, now_ms + tonumber(ARGV[3]))
save()
save_money()
return { 1, need, second, now_ms, uses_of(list, month) }
