-- A scope and the trailing window in it (window.Window): cells of CELL_SIZE bytes, oldest first.
local CELL = '<I4di4'
local CELL_SIZE = 16
local WINDOW_S = 61
local STANDSTILL_S = 5

-- A scope from its record. What is long idle is as good as forgotten.
local function parse(record)
  if record then
    local version, sequences, tpm, rpm, budget, budget_pico, running, tokens, requests, reached,
      seen, from = struct.unpack(HEAD, record)
    if seen > now_s - SCOPE_KEEP_S or running > 0 then
      return { version, sequences, tpm, rpm, budget, budget_pico, running, tokens, requests,
        reached, seen, from, record, false, 0, false }
    end
  end
  return { -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, now_s, 1, '', false, 0, true }
end

local function packed(s)
  return struct.pack(HEAD, s[VERSION], s[SEQUENCES], s[TPM], s[RPM], s[BUDGET], s[BUDGET_PICO],
    s[RUNNING], s[TOKENS], s[REQUESTS], s[REACHED], s[SEEN]) .. string.sub(s[CELLS], s[FROM])
end

local function touch(s)
  s[CHANGED] = true
  if s[SEEN] < now_s then
    s[SEEN] = now_s
  end
end

-- Drop cells that are too old. Returns the second that charges go to.
local function advance(s)
  local cells, from, second = s[CELLS], s[FROM], now_s
  local size, newest = #s[CELLS], 0
  if from <= size then
    newest = struct.unpack(CELL, cells, size - 15)
    if newest > now_s then
      if newest - now_s <= STANDSTILL_S then
        second = newest
      else
        if newest > s[REACHED] then
          s[REACHED] = newest
        end
        cells, from, newest = struct.pack(CELL, now_s, s[TOKENS], s[REQUESTS]), 1, now_s
        s[CELLS], s[FROM], s[CHANGED] = cells, 1, true
      end
    elseif newest < s[REACHED] and s[REACHED] <= now_s then
      cells, from, newest = struct.pack(CELL, now_s, s[TOKENS], s[REQUESTS]), 1, now_s
      s[CELLS], s[FROM], s[CHANGED] = cells, 1, true
    end
    local first = second - WINDOW_S + 1
    if newest < first then
      s[TOKENS], s[REQUESTS], s[FROM], s[CHANGED] = 0, 0, size + 1, true
      newest = 0
    else
      local cell_s, tokens, requests = struct.unpack(CELL, cells, from)
      while cell_s < first do
        s[TOKENS], s[REQUESTS] = s[TOKENS] - tokens, s[REQUESTS] - requests
        from = from + CELL_SIZE
        s[FROM], s[CHANGED] = from, true
        cell_s, tokens, requests = struct.unpack(CELL, cells, from)
      end
    end
  end
  if s[REACHED] > 0 and s[REACHED] <= second - WINDOW_S then
    s[REACHED], s[CHANGED] = 0, true
  end
  s[NEWEST] = newest
  return second
end

-- Add to the cell of a second, which is not older than the newest one; after `advance`.
local function charge(s, second, tokens, requests)
  local last = #s[CELLS]
  s[TOKENS], s[REQUESTS] = s[TOKENS] + tokens, s[REQUESTS] + requests
  if s[NEWEST] == second then
    local _, more_tokens, more_requests = struct.unpack(CELL, s[CELLS], last - 15)
    tokens, requests, last = tokens + more_tokens, requests + more_requests, last - CELL_SIZE
  end
  s[CELLS] = string.sub(s[CELLS], s[FROM], last) .. struct.pack(CELL, second, tokens, requests)
  s[FROM], s[NEWEST] = 1, second
  touch(s)
end

local function due(meta, ms)
  if ms < meta[NEXT_DUE] then
    meta[NEXT_DUE], meta[META_CHANGED] = ms, true
  end
end

-- Write back a scope that changed.
local function save(field, s, meta)
  if s[CHANGED] then
    redis.call('HSET', BOOK, field, packed(s))
    if s[IS_NEW] then
      local again_ms = (s[SEEN] + SCOPE_KEEP_S) * 1000
      redis.call('ZADD', FORGET, again_ms, field)
      due(meta, again_ms)
    end
  end
end
