-- The money of a month, by scope (admission_money). A double holds 2^53, less than ten thousand
-- units of a currency in pico; so an amount is two numbers, whole units and pico below 10^12.
local PICO = 1000000000000
local BEGIN_AGAIN_MS, FINISH_WITHIN_MS = 3000, 600000
local MONTH, FUND = '<dd', '<dddd'
local RECENT_TTL_S, MONEY_TTL_S = 3600, 6048000 -- 70 days: a month counts 31 and an hour
local months, funds = {}, {}

local function add(units, pico, more_units, more_pico)
  units, pico = units + more_units, pico + more_pico
  if pico >= PICO then
    return units + 1, pico - PICO
  end
  return units, pico
end

local function subtract(units, pico, less_units, less_pico)
  units, pico = units - less_units, pico - less_pico
  if pico < 0 then
    return units - 1, pico + PICO
  end
  return units, pico
end

local function exceeds(units, pico, limit_units, limit_pico)
  return units > limit_units or (units == limit_units and pico > limit_pico)
end

local function parse_month(month, record)
  local m = false
  if record then
    local at_ms, known = struct.unpack(MONTH, record)
    m = { at_ms = at_ms, known = known == 1 }
  end
  months[month] = m
  return m
end

local function parse_fund(field, record)
  local f = { spent = 0, spent_pico = 0, reserved = 0, reserved_pico = 0, changed = false }
  if record then
    f.spent, f.spent_pico, f.reserved, f.reserved_pico = struct.unpack(FUND, record)
  end
  funds[field] = f
  return f
end

-- Read a month, and the funds of these scopes, in one command.
local function open_month(month, names)
  if month == '' then
    months[month] = false
    return
  end
  local fields = { month }
  for i = 1, #names do
    fields[i + 1] = month .. '/' .. names[i]
  end
  local found = redis.call('HMGET', MONEY, unpack(fields))
  if parse_month(month, found[1]) then
    for i = 1, #names do
      if not funds[fields[i + 1]] then
        parse_fund(fields[i + 1], found[i + 1])
      end
    end
  end
end

-- A month if it is tracked, else false.
local function tracked(month)
  if months[month] == nil then
    parse_month(month, month ~= '' and redis.call('HGET', MONEY, month))
  end
  return months[month]
end

local function fund_of(month, name)
  local field = month .. '/' .. name
  return funds[field] or parse_fund(field, redis.call('HGET', MONEY, field))
end

local function reserve(lease, list)
  if (lease.cost > 0 or lease.cost_pico > 0) and tracked(lease.month) then
    for i = 1, #list do
      local f = fund_of(lease.month, list[i].name)
      f.reserved, f.reserved_pico = add(f.reserved, f.reserved_pico, lease.cost, lease.cost_pico)
      f.changed = true
    end
  end
end

local function release(lease, list)
  if (lease.cost > 0 or lease.cost_pico > 0) and tracked(lease.month) then
    for i = 1, #list do
      local f = fund_of(lease.month, list[i].name)
      f.reserved, f.reserved_pico =
        subtract(f.reserved, f.reserved_pico, lease.cost, lease.cost_pico)
      f.changed = true
    end
  end
end

-- Whether what was spent before a month was begun is being summed up.
local function is_open(m)
  return m and not m.known and now_ms - m.at_ms < FINISH_WITHIN_MS
end

local function spend(month, list, units, pico, rid)
  local m = tracked(month)
  if not m then
    return
  end
  if is_open(m) then
    redis.call('HSET', RECENT, rid, month)
    redis.call('EXPIRE', RECENT, RECENT_TTL_S)
  end
  if units > 0 or pico > 0 then
    for i = 1, #list do
      local f = fund_of(month, list[i].name)
      f.spent, f.spent_pico = add(f.spent, f.spent_pico, units, pico)
      f.changed = true
    end
  end
end

local function forget_recent(month)
  local recent = redis.call('HGETALL', RECENT)
  for i = 1, #recent, 2 do
    if recent[i + 1] == month then
      redis.call('HDEL', RECENT, recent[i])
    end
  end
end

local function save_money()
  local fields, n = {}, 0
  for field, f in pairs(funds) do
    if f.changed then
      fields[n + 1] = field
      fields[n + 2] = struct.pack(FUND, f.spent, f.spent_pico, f.reserved, f.reserved_pico)
      n = n + 2
    end
  end
  if n > 0 then
    redis.call('HSET', MONEY, unpack(fields))
  end
end
