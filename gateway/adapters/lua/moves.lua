-- Taking back from a window, and charging anew.

-- Take back from the cell that was charged, if it is still there; after `advance`.
local function refund(s, second, tokens, requests)
  local newest = s[NEWEST]
  if second <= s[REACHED] or second < s[OLDEST] or second > newest
    or (tokens == 0 and requests == 0) then
    return
  end
  if second == newest then
    local left_tokens, left_requests = s[CELL_TOKENS] - tokens, s[CELL_REQUESTS] - requests
    if left_tokens == 0 and left_requests == 0 then
      local at = #s[CELLS] - s[CELL_SIZE] + 1
      if at < s[FROM] then
        only(s, 0, 0, 0)
      else
        s[NEWEST], left_tokens, left_requests = older(s, at)
        s[CELLS] = string.sub(s[CELLS], 1, at - 1)
      end
    end
    s[CELL_TOKENS], s[CELL_REQUESTS] = left_tokens, left_requests
    s[TOKENS], s[REQUESTS] = s[TOKENS] - tokens, s[REQUESTS] - requests
    touch(s)
    return
  end
  local size, from = s[CELL_SIZE], s[FROM]
  local high = (#s[CELLS] - from + 1) / size - 1
  local low = math.max(0, high + 1 - (newest - second)) -- seconds differ: none of it is earlier
  local middle = low
  while low <= high do
    local at = from + middle * size
    local cell_s, cell_tokens, cell_requests = older(s, at)
    if cell_s == second then
      local cell = ''
      if cell_tokens ~= tokens or cell_requests ~= requests then
        cell = older_packed(s, second, cell_tokens - tokens, cell_requests - requests)
      end
      at = s[FROM] + middle * s[CELL_SIZE]
      s[CELLS] = string.sub(s[CELLS], s[FROM], at - 1) .. cell
        .. string.sub(s[CELLS], at + s[CELL_SIZE])
      s[FROM], s[TOKENS], s[REQUESTS] = 1, s[TOKENS] - tokens, s[REQUESTS] - requests
      s[OLDEST] = s[CELLS] ~= '' and older(s, 1) or newest
      touch(s)
      return
    elseif cell_s < second then
      low = middle + 1
    else
      high = middle - 1
    end
    middle = math.floor((low + high) / 2)
  end
end

-- Charge a reservation and its request to the present second instead of the one that they were
-- charged to. Returns that second (admission_state.charge_anew).
local function charge_anew(list, second, tokens)
  local now = 0
  for i = 1, 4 do
    now = math.max(now, advance(list[i]))
  end
  for i = 1, 4 do
    refund(list[i], second, tokens, 1)
    charge(list[i], now, tokens, 1)
  end
  return now
end
