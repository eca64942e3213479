-- A scope and the trailing window in it (window.Window). Its newest cell is in its own fields, the
-- older ones, oldest first, are in CELLS.
local WINDOW_S = 61
local STANDSTILL_S = 5

-- A scope from its record. What is long idle is as good as forgotten.
local function parse(record)
  if record then
    local version, sequences, tpm, rpm, budget, budget_pico, running, tokens, requests, seen, oldest,
      newest, cell_tokens, cell_requests = struct.unpack(HEAD, record)
    if seen > now_s - SCOPE_KEEP_S or running > 0 then
      local reached, from, cell, size = 0, TAIL_AT, NARROW, NARROW_SIZE
      if newest >= IS_MARKED then
        local is_wide
        newest, reached, is_wide, from = newest - IS_MARKED, struct.unpack(MARK, record, from)
        if is_wide == 1 then
          cell, size = WIDE, WIDE_SIZE
        end
      end
      return { version, sequences, tpm, rpm, budget, budget_pico, running, tokens, requests, seen,
        oldest, newest, cell_tokens, cell_requests, reached, from, record, cell, size, false, false }
    end
  end
  return { -1, -1, -1, -1, -1, 0, 0, 0, 0, now_s, 0, 0, 0, 0, 0, 1, '', NARROW, NARROW_SIZE, false,
    true }
end

-- Where LEASE begins in a record, live or lapsed.
local function lease_at(record)
  return string.sub(record, 1, 1) == 'P' and 10 or 2
end

local function packed(s)
  local newest, rest = s[NEWEST], string.sub(s[CELLS], s[FROM])
  local is_wide = rest ~= '' and s[CELL_SIZE] == WIDE_SIZE
  if s[REACHED] > 0 or is_wide then
    newest, rest = newest + IS_MARKED, struct.pack(MARK, s[REACHED], is_wide and 1 or 0) .. rest
  end
  return struct.pack(HEAD, s[VERSION], s[SEQUENCES], s[TPM], s[RPM], s[BUDGET], s[BUDGET_PICO],
    s[RUNNING], s[TOKENS], s[REQUESTS], s[SEEN], s[OLDEST], newest, s[CELL_TOKENS],
    s[CELL_REQUESTS]) .. rest
end

local function touch(s)
  s[CHANGED] = true
  if s[SEEN] < now_s then
    s[SEEN] = now_s
  end
end

-- One of the older cells: second, tokens, requests.
local function older(s, at)
  local low_bits, tokens, requests = struct.unpack(s[CELL], s[CELLS], at)
  return s[NEWEST] - (s[NEWEST] - low_bits) % 256, tokens, requests
end

-- A cell as it is packed among the older ones; all of them become WIDE where it does not fit.
local function older_packed(s, second, tokens, requests)
  if s[CELL_SIZE] == NARROW_SIZE
    and (tokens < 0 or tokens >= TOKENS_FIT or requests < 0 or requests >= REQUESTS_FIT) then
    local cells = {}
    for at = s[FROM], #s[CELLS], NARROW_SIZE do
      cells[#cells + 1] = struct.pack(WIDE, struct.unpack(NARROW, s[CELLS], at))
    end
    s[CELLS], s[FROM], s[CELL], s[CELL_SIZE] = table.concat(cells), 1, WIDE, WIDE_SIZE
  end
  return struct.pack(s[CELL], second % 256, tokens, requests)
end

-- WIDE cells become NARROW ones where all of them fit into that.
local function narrow_again(s)
  local cells = {}
  for at = s[FROM], #s[CELLS], WIDE_SIZE do
    local low_bits, tokens, requests = struct.unpack(WIDE, s[CELLS], at)
    if tokens < 0 or tokens >= TOKENS_FIT or requests < 0 or requests >= REQUESTS_FIT then
      return
    end
    cells[#cells + 1] = struct.pack(NARROW, low_bits, tokens, requests)
  end
  s[CELLS], s[FROM], s[CELL], s[CELL_SIZE] = table.concat(cells), 1, NARROW, NARROW_SIZE
end

-- Make a second's cell the only one.
local function only(s, second, tokens, requests)
  s[OLDEST], s[NEWEST], s[CELL_TOKENS], s[CELL_REQUESTS] = second, second, tokens, requests
  s[CELLS], s[FROM], s[CELL], s[CELL_SIZE], s[CHANGED] = '', 1, NARROW, NARROW_SIZE, true
end

-- Drop cells that are too old. Returns the second that charges go to.
local function advance(s)
  local second, newest = now_s, s[NEWEST]
  if newest > 0 then
    if newest > now_s then
      if newest - now_s <= STANDSTILL_S then
        second = newest
      else
        if newest > s[REACHED] then
          s[REACHED] = newest
        end
        only(s, now_s, s[TOKENS], s[REQUESTS])
      end
    elseif newest < s[REACHED] and s[REACHED] <= now_s then
      only(s, now_s, s[TOKENS], s[REQUESTS])
    end
    local last_aged, from = second - WINDOW_S, s[FROM]
    if s[NEWEST] <= last_aged then
      s[TOKENS], s[REQUESTS] = 0, 0
      only(s, 0, 0, 0)
    end
    while s[OLDEST] <= last_aged and s[NEWEST] > 0 do
      local _, tokens, requests = older(s, s[FROM])
      s[TOKENS], s[REQUESTS] = s[TOKENS] - tokens, s[REQUESTS] - requests
      s[FROM], s[CHANGED] = s[FROM] + s[CELL_SIZE], true
      s[OLDEST] = s[FROM] <= #s[CELLS] and older(s, s[FROM]) or s[NEWEST]
    end
    if s[CELL_SIZE] == WIDE_SIZE and s[FROM] > from then
      narrow_again(s)
    end
  end
  if s[REACHED] > 0 and s[REACHED] <= second - WINDOW_S then
    s[REACHED], s[CHANGED] = 0, true
  end
  return second
end

-- Add to the cell of a second, which is not older than the newest one; after `advance`.
local function charge(s, second, tokens, requests)
  s[TOKENS], s[REQUESTS] = s[TOKENS] + tokens, s[REQUESTS] + requests
  if s[NEWEST] == second then
    s[CELL_TOKENS], s[CELL_REQUESTS] = s[CELL_TOKENS] + tokens, s[CELL_REQUESTS] + requests
  else
    if s[NEWEST] > 0 then
      local cell = older_packed(s, s[NEWEST], s[CELL_TOKENS], s[CELL_REQUESTS])
      s[CELLS], s[FROM] = string.sub(s[CELLS], s[FROM]) .. cell, 1
    else
      s[OLDEST] = second
    end
    s[NEWEST], s[CELL_TOKENS], s[CELL_REQUESTS] = second, tokens, requests
  end
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
      redis.call('ZADD', DUE, FORGET + again_ms, field)
      due(meta, again_ms)
    end
  end
end
