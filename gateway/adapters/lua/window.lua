-- The trailing window of one scope, packed: cells of 16 bytes, oldest first (window.Window).
local CELL, CELL_SIZE = '<I4di4', 16
local CELLS, STANDSTILL_S = 61, 5

-- The newest second that has a cell, or nil.
local function newest_of(s)
  local size = #s.cells
  if size > 0 then
    return (struct.unpack('<I4', s.cells, size - CELL_SIZE + 1))
  end
  return nil
end

-- Drop cells that are too old. Returns the second that charges go to.
local function advance(s)
  local second, newest = now_s, newest_of(s)
  if newest and newest > now_s then
    if newest - now_s <= STANDSTILL_S then
      second = newest
    else
      s.cells = struct.pack(CELL, now_s, s.tokens, s.requests)
      s.reached = math.max(s.reached, newest)
      s.changed = true
    end
  end
  local oldest_kept = second - CELLS + 1
  if newest and newest < oldest_kept then
    s.cells, s.tokens, s.requests, s.changed = '', 0, 0, true
  elseif newest then
    local at, tokens, requests = 1, s.tokens, s.requests
    local cell_s, cell_tokens, cell_requests = struct.unpack(CELL, s.cells, at)
    while cell_s < oldest_kept do
      tokens, requests, at = tokens - cell_tokens, requests - cell_requests, at + CELL_SIZE
      cell_s, cell_tokens, cell_requests = struct.unpack(CELL, s.cells, at)
    end
    if at > 1 then
      s.cells, s.tokens, s.requests = string.sub(s.cells, at), tokens, requests
      s.changed = true
    end
  end
  if s.reached > 0 and s.reached < oldest_kept then
    s.reached, s.changed = 0, true
  end
  return second
end

-- Add to the cell of a second, which is not older than the newest one.
local function charge(s, second, tokens, requests)
  local cells = s.cells
  local at = #cells - CELL_SIZE + 1
  s.tokens, s.requests = s.tokens + tokens, s.requests + requests
  if at > 0 then
    local cell_s, cell_tokens, cell_requests = struct.unpack(CELL, cells, at)
    if cell_s == second then
      cells = string.sub(cells, 1, at - 1)
      tokens, requests = tokens + cell_tokens, requests + cell_requests
    end
  end
  s.cells = cells .. struct.pack(CELL, second, tokens, requests)
  touch(s)
end

-- Take back from the cell that was charged, if it is still there.
local function refund(s, second, tokens, requests)
  local newest = newest_of(s)
  if second <= s.reached or not newest or second > newest then
    return
  end
  local cells = s.cells
  local high = #cells / CELL_SIZE - 1
  local low = math.max(0, high - (newest - second)) -- seconds differ: no cell of it is earlier
  local middle = low
  while low <= high do
    local at = middle * CELL_SIZE + 1
    local cell_s, cell_tokens, cell_requests = struct.unpack(CELL, cells, at)
    if cell_s == second then
      local cell = ''
      if cell_tokens ~= tokens or cell_requests ~= requests then
        cell = struct.pack(CELL, second, cell_tokens - tokens, cell_requests - requests)
      end
      s.cells = string.sub(cells, 1, at - 1) .. cell .. string.sub(cells, at + CELL_SIZE)
      s.tokens, s.requests = s.tokens - tokens, s.requests - requests
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

-- Move a lease's reservation and its request to the present second (admission_state.charge_anew).
local function charge_anew(lease, list)
  local second = 0
  for i = 1, #list do
    second = math.max(second, advance(list[i]))
  end
  for i = 1, #list do
    refund(list[i], lease.second, lease.tokens, 1)
    charge(list[i], second, lease.tokens, 1)
  end
  lease.second = second
end

-- Until at least so much has aged out, ms (window.Window.wait_ms).
local function wait_ms(s, excess_tokens, excess_requests)
  local last, tokens, requests = now_s, 0, 0
  for at = 1, #s.cells, CELL_SIZE do
    local cell_s, cell_tokens, cell_requests = struct.unpack(CELL, s.cells, at)
    last, tokens, requests = cell_s, tokens + cell_tokens, requests + cell_requests
    if tokens >= excess_tokens and requests >= excess_requests then
      break
    end
  end
  return math.max(1, (last + CELLS) * 1000 - now_ms)
end
