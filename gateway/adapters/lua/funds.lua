-- Changing the funds of a month one at a time.

-- Change a fund: what is spent more, what is reserved more or less.
local function change_fund(month, scope, spent, spent_pico, reserved, reserved_pico, is_freed)
  local field = month .. '@' .. scope
  local a, b, c, d = 0, 0, 0, 0
  local record = redis.call('HGET', MONEY, field)
  if record then
    a, b, c, d = struct.unpack(FUND, record)
  end
  a, b = add(a, b, spent, spent_pico)
  if is_freed then
    c, d = subtract(c, d, reserved, reserved_pico)
  else
    c, d = add(c, d, reserved, reserved_pico)
  end
  redis.call('HSET', MONEY, field, struct.pack(FUND, a, b, c, d))
end

-- Since when a month is tracked, and whether it is known; nil where it is not tracked.
local function tracked(month)
  local record = month ~= '' and redis.call('HGET', MONEY, month)
  if record then
    local at_ms, known = struct.unpack(MONTH, record)
    return at_ms, known == 1
  end
  return nil, false
end
