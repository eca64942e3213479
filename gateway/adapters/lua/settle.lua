-- End a lease: sequences free, actual tokens and money in place of the reserved ones
-- (admission_leases.settle).
-- ARGV: 1 now, 2 request id, 3 '@' key scope, 4 '@' model scope, 5 '@' key and model scope, 6 month
--       as the holder knows it, or empty, 7 ACTUAL
-- Reply: {1 live, 2 lapsed, 3 repeated, 4 unknown}
local ACTUAL = '<ddddd' -- tokens, ran (1 or 0), carried (1 or 0), cost (units, pico)
local rid, month = ARGV[2], ARGV[6]
local found, meta = open(rid, '@tenant', ARGV[3], ARGV[4], ARGV[5])
if not found then
  return meta
end
local actual, ran, carried, spent, spent_pico = struct.unpack(ACTUAL, ARGV[7])
local state = state_of(found[2])
if state == 'S' then
  close(meta)
  return { 3 }
end
local reply, freed, freed_pico = { 4 }, 0, 0
local list = { parse(found[3]), parse(found[4]), parse(found[5]), parse(found[6]) }
if state then
  local at = lease_at(found[2])
  local charged_ms, sequences, tokens, cost, cost_pico = struct.unpack(LEASE, found[2], at)
  local second = (charged_ms - charged_ms % 1000) / 1000
  if carried == 1 then
    second = charge_anew(list, second, tokens)
  end
  local unused, excess = 0, 0
  if actual > tokens then
    excess = actual - tokens
  else
    unused = tokens - actual
  end
  for i = 1, 4 do
    local s = list[i]
    local now = advance(s)
    refund(s, second, unused, 1 - ran)
    if excess > 0 then
      charge(s, now, excess, 0)
    end
    touch(s)
    if state == 'L' then
      s[RUNNING] = s[RUNNING] - sequences
    end
  end
  month = string.match(found[2], '^[^|]*', at + LEASE_SIZE)
  if state == 'L' then
    reply[1], freed, freed_pico = 1, cost, cost_pico
  else
    reply[1] = 2
  end
elseif carried == 1 and ran == 1 then
  charge_anew(list, 0, actual)
end

if meta[TRACKED] == 1 and month ~= '' then
  local fields = { month .. '@tenant', month .. ARGV[3], month .. ARGV[4], month .. ARGV[5] }
  local funds = redis.call('HMGET', MONEY, month, fields[1], fields[2], fields[3], fields[4])
  local at_ms, known = 0, 1
  if funds[1] then
    at_ms, known = struct.unpack(MONTH, funds[1])
  end
  local is_open = known == 0 and now_ms - at_ms < FINISH_WITHIN_MS
  if is_open then
    redis.call('HSET', RECENT, rid, month)
    redis.call('EXPIRE', RECENT, RECENT_TTL_S)
  end
  if funds[1] and (state or is_open) and spent + spent_pico + freed + freed_pico > 0 then
    for i = 1, 4 do
      local a, b, c, d = 0, 0, 0, 0
      if funds[i + 1] then
        a, b, c, d = struct.unpack(FUND, funds[i + 1])
      end
      a, b = add(a, b, spent, spent_pico)
      c, d = subtract(c, d, freed, freed_pico)
      funds[i + 1] = struct.pack(FUND, a, b, c, d)
    end
    redis.call('HSET', MONEY, fields[1], funds[2], fields[2], funds[3], fields[3], funds[4],
      fields[4], funds[5])
  end
end

local forgotten_ms = math.ceil((now_ms + SETTLED_KEEP_MS) / SETTLED_GRID_MS) * SETTLED_GRID_MS
local record = 'S' .. struct.pack(TIMED, forgotten_ms)
if state then
  save_all(rid, record, list)
else
  redis.call('HSET', BOOK, rid, record)
end
redis.call('ZADD', DUE, FORGET + forgotten_ms, rid)
due(meta, forgotten_ms)
save('@tenant', list[1], meta)
save(ARGV[3], list[2], meta)
save(ARGV[4], list[3], meta)
save(ARGV[5], list[4], meta)
close(meta)
return reply
