-- The usual case of settle.lua, without what makes that dear: a live lease ends while nothing is
-- due, the clock has not stepped back, and no money is counted. Whatever else it finds, it leaves
-- to what follows, and has changed nothing.
-- Reply: as settle.lua
local LIVE = 76 -- 'L'
repeat
  local call, read, write, sub = redis.call, struct.unpack, struct.pack, string.sub
  local name_2, name_3, name_4 = ARGV[3], ARGV[4], ARGV[5]
  local found = call('HMGET', BOOK, '@', ARGV[2], '@tenant', name_2, name_3, name_4)
  local meta, lease = found[1], found[2]
  local old_1, old_2, old_3, old_4 = found[3], found[4], found[5], found[6]
  if not (meta and lease and old_1 and old_2 and old_3 and old_4) or string.byte(lease) ~= LIVE then
    break
  end
  local sequences_from, tokens_from, next_due, kept_until, tracked = read(META, meta)
  local left_ms = kept_until - now_ms
  local forgotten_ms = now_ms + SETTLED_KEEP_MS + SETTLED_GRID_MS - 1
  forgotten_ms = forgotten_ms - forgotten_ms % SETTLED_GRID_MS
  local actual, ran, carried = read(ACTUAL, ARGV[7])
  local _, _, sequences, reserved, charged_s = read(HELD_NUMBERS, lease)
  if now_ms >= next_due or tracked == 1 or carried == 1
    or left_ms < KEPT_AGAIN_MS or left_ms > KEPT_S * 1000 then
    break
  end
  local unused, not_run = reserved - actual, 1 - ran
  if unused < 0 and not_run == 1 then
    break
  end
  -- each scope
  local new_N
  do
    local _, _, _, _, _, _, running, used, requests, reached, seen, from = read(HEAD, old_N)
    -- insert aged
    running = running - sequences
    local at, cell = size + 1, ''
    if unused < 0 then
      -- Too little was reserved: the rest is charged to the present second.
      if newest == now_s then
        at = size - 15
      else
        cell_tokens, cell_requests = 0, 0
      end
      cell, used = write(CELL, now_s, cell_tokens - unused, cell_requests), used - unused
    elseif charged_s > 0 and charged_s <= newest and (unused > 0 or not_run == 1) then
      -- Seconds differ, so the cell of `charged_s` is no earlier than at `low`.
      local high = size - 15
      local low = high - (newest - charged_s) * CELL_SIZE
      if low < from then
        low = from
      end
      local middle, second = low, 0
      while low <= high do
        second, cell_tokens, cell_requests = read(CELL, old_N, middle)
        if second == charged_s then
          at, used, requests = middle, used - unused, requests - not_run
          if cell_tokens ~= unused or cell_requests ~= not_run then
            cell = write(CELL, second, cell_tokens - unused, cell_requests - not_run)
          end
          break
        elseif second < charged_s then
          low = middle + CELL_SIZE
        else
          high = middle - CELL_SIZE
        end
        middle = (low + high) / 2
        middle = middle - (middle - from) % CELL_SIZE
      end
    end
    new_N = write(WITHOUT, old_N, running, used, requests, 0, seen)
    if from < at then
      new_N = new_N .. sub(old_N, from, at - 1) .. cell .. sub(old_N, at + CELL_SIZE)
    else
      new_N = new_N .. cell .. sub(old_N, at + CELL_SIZE)
    end
  end
  -- end each
  local rid = ARGV[2]
  call('ZREM', LEASES, rid)
  call('HSET', BOOK, rid, write(ENDED, 'S', forgotten_ms), '@tenant', new_1, name_2, new_2, name_3,
    new_3, name_4, new_4)
  call('ZADD', FORGET, forgotten_ms, rid)
  if forgotten_ms < next_due then
    call('HSET', BOOK, '@', write(META, sequences_from, tokens_from, forgotten_ms, kept_until,
      tracked))
  end
  do
    return { 1 }
  end
until true
