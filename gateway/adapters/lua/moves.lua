-- Taking back from a window, and charging anew.

-- Take back from the cell that was charged, if it is still there; after `advance`.
local function refund(s, second, tokens, requests)
  local newest = s[NEWEST]
  if second <= s[REACHED] or second > newest or (tokens == 0 and requests == 0) then
    return
  end
  local cells, from = s[CELLS], s[FROM]
  local high = (#cells - from + 1) / CELL_SIZE - 1
  local low = high - (newest - second) -- seconds differ: no cell of it is earlier
  if low < 0 then
    low = 0
  end
  local middle = low
  while low <= high do
    local at = from + middle * CELL_SIZE
    local cell_s, cell_tokens, cell_requests = struct.unpack(CELL, cells, at)
    if cell_s == second then
      local cell = ''
      if cell_tokens ~= tokens or cell_requests ~= requests then
        cell = struct.pack(CELL, second, cell_tokens - tokens, cell_requests - requests)
      end
      s[CELLS] = string.sub(cells, from, at - 1) .. cell .. string.sub(cells, at + CELL_SIZE)
      s[FROM], s[TOKENS], s[REQUESTS] = 1, s[TOKENS] - tokens, s[REQUESTS] - requests
      if cell == '' and second == newest then
        local size = #s[CELLS]
        s[NEWEST] = size > 0 and struct.unpack(CELL, s[CELLS], size - 15) or 0
      end
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
