-- Read these fields of the book, after what time alone changes in it. Returns them from the second
-- place on, and META as an array; or nil and the reply where the script can not go on.
local function open(...)
  local found = redis.call('HMGET', BOOK, '@', ...)
  if not found[1] then
    return nil, { -1 }
  end
  local meta = { struct.unpack(META, found[1]) }
  meta[META_CHANGED] = false
  if now_ms >= meta[NEXT_DUE] then
    if reap(meta) then
      return nil, { -2 }
    end
    found = redis.call('HMGET', BOOK, '@', ...)
    meta = { struct.unpack(META, found[1]) }
    meta[META_CHANGED] = false
  end
  return found, meta
end

-- The state of a record that is not forgotten yet: 'L', 'P', 'S', or nil.
local function state_of(record)
  if record then
    local state = string.sub(record, 1, 1)
    if state == 'L' or struct.unpack(TIMED, record, 2) > now_ms then
      return state
    end
  end
  return nil
end
