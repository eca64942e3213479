-- The counter of one that is not active.
local function remembered(name, band)
  local idle = P_IDLE + OF_BAND_P * band
  local counter = pool[idle] > 0 and call('ZSCORE', idle_keys[band], name)
  if not counter then
    return 0
  end
  pool[idle] = pool[idle] - call('ZREM', idle_keys[band], name)
  return tonumber(counter)
end
