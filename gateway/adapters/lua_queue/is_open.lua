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
