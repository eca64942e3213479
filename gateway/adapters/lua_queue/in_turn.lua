-- Tenants that wait in a band, in turn: the next at each call, some `count` of them, AT behind all.
-- Newcomers go before whoever stands no lower than they do. Mostly there are none.
local function in_turn(band)
  local others, at, n = turns_keys[band], 0, OF_BAND_N * band
  if news[N_NEW + n] <= 0 then
    return function(count)
      local found = call('ZRANGE', others, at, at + count - 1)
      at = at + #found
      return found
    end
  end
  local newcomers, passed, phase = {}, 0, 1
  local kept = news[N_NEW + n] - (fresh[band] and 1 or 0)
  return function(count)
    if phase == 1 then
      local below = format('(%.0f', news[N_LEVEL + n])
      local found = call('ZRANGEBYSCORE', others, '-inf', below, 'LIMIT', at, count)
      at = at + #found
      if #found > 0 then
        return found
      end
      phase, at, passed = 2, 0, at
    end
    if phase == 2 then
      local last = math.min(at + count, kept) - 1
      local found = at <= last and call('ZRANGE', KEYS[16 + band], at, last) or {}
      at = at + #found
      if at >= kept then
        phase, at = 3, passed
        found[#found + 1] = fresh[band]
      end
      for _, name in ipairs(found) do
        newcomers[name] = true
      end
      if #found > 0 then
        return found
      end
    end
    local all, found
    repeat
      all, found = call('ZRANGE', others, at, at + count - 1), {}
      at = at + #all
      for _, name in ipairs(all) do
        if not newcomers[name] then
          found[#found + 1] = name
        end
      end
    until #found > 0 or #all == 0
    return found
  end
end
