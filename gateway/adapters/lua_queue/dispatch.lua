-- `asking` is told by the reply. False where not all could be granted at once, or nothing yet.
local function dispatch(asking)
  if now < pool[P_UNTOLD_UNTIL] then
    return false
  end
  if is_any_open() and not grant_all(asking) then
    return false
  end
  if not asking and is_any_takeable() then
    take_back()
  end
  return true
end
