-- Whether there is anything to grant, or anything to ask back: mostly there is not.
local function is_any_open()
  for _, room in ipairs(rooms) do
    if room[R_WELL_UNTIL] > now and (room[R_RUNNING] == 0 or
      (room[R_RUNNING] < room[R_SEQUENCES_MAX] and room[R_TOKENS] < room[R_TOKENS_MAX])) then
      return true
    end
  end
  return false
end

local function is_any_takeable()
  for _, room in ipairs(rooms) do
    if room[R_MAY_SEQUENCES] > 0 then
      return pool[P_COUNT] > 0
    end
  end
  return false
end

-- Workers that are kept for others, one of each band (domain/queue/order.Order.kept_from).
local function kept_from(id, as_batch)
  local kept, kept_too = pool[P_BYPASS_WORKER], pool[P_BYPASS_WORKER + OF_BAND_P]
  if id == pool[P_BYPASS_ID] then
    if kept == kept_too then
      return '', ''
    end
    kept = ''
  end
  if not as_batch or id == pool[P_BYPASS_ID + OF_BAND_P] then
    kept_too = ''
  end
  return kept, kept_too
end
