-- End a lease: sequences free, actual tokens and money in place of the reserved ones
-- (admission_leases.settle).
-- ARGV: 1 now, 2 request id, 3 key id, 4 model, 5 month or empty, 6 whether it ran (1 or 0),
--       7 whether it is carried (1 or 0), 8 actual tokens, cost (units, pico): 3 doubles
-- Reply: {1 live, 2 lapsed, 3 repeated, 4 unknown}
local rid, key, model, month = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local ran, carried = ARGV[6] == '1', ARGV[7] == '1'
local actual, cost, cost_pico = struct.unpack('<ddd', ARGV[8])
local names = { scope_names(key, model) }
local records = open(names, { rid })
if not records then
  return UNBORN
end
if reap() then
  return AGAIN
end
local record = written[rid] or records[1]
local state = state_of(record)
if state == 'S' then
  save()
  save_money()
  return { 3 }
end
open_month(month, names)

local found, list = 4, nil
if state then
  local lease = parse_lease(record)
  list, month = scopes_of(lease), lease.month
  if carried then
    charge_anew(lease, list)
  end
  local requests = 1
  if ran then
    requests = 0
  end
  for i = 1, 4 do
    local s = list[i]
    local second = advance(s)
    refund(s, lease.second, math.max(0, lease.tokens - actual), requests)
    if actual > lease.tokens then
      charge(s, second, actual - lease.tokens, 0)
    end
    touch(s)
    if state == 'L' then
      s.running = s.running - lease.sequences
    end
  end
  if state == 'L' then
    found = 1
    redis.call('ZREM', LEASES, rid)
    release(lease, list)
  else
    found = 2
    redis.call('ZREM', LAPSED, rid)
  end
  spend(month, list, cost, cost_pico, rid)
else
  local lost = { key = key, model = model, tokens = actual, second = 0 }
  if carried and ran then
    charge_anew(lost, scopes_of(lost))
  end
  if is_open(tracked(month)) then
    spend(month, scopes_of(lost), cost, cost_pico, rid)
  end
  if record then
    redis.call('ZREM', LAPSED, rid)
  end
end

local forgotten = math.ceil((now_ms + SETTLED_KEEP_MS) / SETTLED_GRID_MS) * SETTLED_GRID_MS
written[rid] = 'S' .. struct.pack('<d', forgotten)
redis.call('ZADD', FORGET, forgotten, rid)
due_at(forgotten)
save()
save_money()
return { found }
