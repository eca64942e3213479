-- The list of gateways as presence.lua keeps it, and the server's time.
--
-- KEYS[1] the hash. Returns the present time (Unix ms), then the hash's fields and values. What was
-- seen or began later than now did so before the clock stepped back: it counts as of now.
local key = KEYS[1]
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local present = string.format('%.0f', now)
local fields = redis.call('HGETALL', key)
for i = 2, #fields, 2 do
  local seen, rest = string.match(fields[i], '^(%d+)(|%d+)$')
  if fields[i - 1] == 'began' then
    seen, rest = fields[i], ''
  end
  if seen and tonumber(seen) > now then
    fields[i] = present .. rest
    redis.call('HSET', key, fields[i - 1], fields[i])
  end
end
table.insert(fields, 1, present)
return fields
