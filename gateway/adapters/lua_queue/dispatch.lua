-- `asking` is told by the reply. False where not all could be granted at once.
local function dispatch(asking)
  if is_any_open() and not grant_all(asking) then
    return false
  end
  if not asking and is_any_takeable() then
    take_back()
  end
  return true
end
