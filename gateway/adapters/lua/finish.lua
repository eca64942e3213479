-- The usual case of settle.lua, without what makes that dear: a live lease ends while nothing is
-- due, the clock has not stepped back, and no money is counted. Whatever else it finds, it leaves
-- to what follows, and has changed nothing.
-- Reply: as settle.lua, in bytes
repeat
  local call, read, write, sub, byte = redis.call, struct.unpack, struct.pack, string.sub, string.byte
  local rid, name_2, name_3, name_4 = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
  local found = call('HMGET', BOOK, '@', rid, '@tenant', name_2, name_3, name_4)
  local meta, lease = found[1], found[2]
  local old_1, old_2, old_3, old_4 = found[3], found[4], found[5], found[6]
  if not (meta and lease and old_1 and old_2 and old_3 and old_4) or #lease < LEASE_REST then
    break
  end
  local sequences_from, tokens_from, next_due, kept_until, tracked = read(META, meta)
  local left_ms = kept_until - now_ms
  local forgotten_ms = now_ms + SETTLED_KEEP_MS + SETTLED_GRID_MS - 1
  forgotten_ms = forgotten_ms - forgotten_ms % SETTLED_GRID_MS
  local actual, ran, carried = read(ACTUAL, ARGV[7])
  local state, charged_ms, sequences, reserved = read(LEASE_NUMBERS, lease)
  if state ~= 'L' or now_ms >= next_due or tracked == 1 or carried == 1
    or left_ms < KEPT_AGAIN_MS or left_ms > KEPT_S * 1000 then
    break
  end
  local charged_s = (charged_ms - charged_ms % 1000) / 1000
  local unused, not_run = reserved - actual, 1 - ran
  if unused < 0 and not_run == 1 then
    break
  end
  local idle_s, aged_s = now_s - SCOPE_KEEP_S, now_s - WINDOW_S
  -- each scope
  local new_N
  do
    local limits, running, used, requests, seen, oldest, newest, cell_tokens, cell_requests =
      read(HEAD_FROM_LIMITS, old_N)
    local from, size, pushed = TAIL_AT, #old_N, ''
    if newest ~= now_s then
      -- insert aged
    elseif oldest <= aged_s or seen < now_s then
      break -- charged while the clock was behind it
    end
    -- Of the older cells stays what is before `to` and what begins at `again`; `pushed` between.
    local to, again = size + 1, size + 1
    if unused < 0 then
      -- Too little was reserved: the rest is charged to the present second.
      if newest ~= now_s then
        -- insert push
        newest, cell_tokens, cell_requests = now_s, 0, 0
      end
      used, cell_tokens = used - unused, cell_tokens - unused
    elseif charged_s < oldest or charged_s > newest or charged_s == 0 then
      -- What was charged has aged.
    elseif charged_s == newest then
      used, requests = used - unused, requests - not_run
      cell_tokens, cell_requests = cell_tokens - unused, cell_requests - not_run
      if cell_tokens == 0 and cell_requests == 0 then
        if from > size then
          oldest, newest = 0, 0
        else
          local low_bits
          to = size - 5
          low_bits, cell_tokens, cell_requests = read(NARROW, old_N, to)
          newest = newest - (newest - low_bits) % 256
        end
      end
    elseif unused > 0 or not_run == 1 then
      -- Seconds differ, so the cell of `charged_s` is no earlier than at `low`.
      local age, high = newest - charged_s, size - 5
      local low = size + 1 - age * NARROW_SIZE
      if low < from then
        low = from
      end
      local middle = low
      while low <= high do
        local low_bits, older_tokens, older_requests = read(NARROW, old_N, middle)
        local age_here = (newest - low_bits) % 256
        if age_here == age then
          to, again, used, requests = middle, middle + NARROW_SIZE, used - unused, requests - not_run
          older_tokens, older_requests = older_tokens - unused, older_requests - not_run
          if older_requests > 0 and older_tokens >= 0 then
            pushed = write(NARROW, low_bits, older_tokens, older_requests)
          elseif older_requests ~= 0 or older_tokens ~= 0 then
            pushed = nil -- not NARROW any more
          elseif to == from then
            oldest = newest
            if again <= size then
              oldest = newest - (newest - byte(old_N, again)) % 256
            end
          end
          break
        elseif age_here > age then
          low = middle + NARROW_SIZE
        else
          high = middle - NARROW_SIZE
        end
        middle = (low + high) / 2
        middle = middle - (middle - from) % NARROW_SIZE
      end
      if not pushed then
        break
      end
    end
    local head = write(HEAD_FROM_RUNNING, running - sequences, used, requests, seen, oldest, newest,
      cell_tokens, cell_requests)
    if again <= size then
      if from < to then
        new_N = limits .. head .. sub(old_N, from, to - 1) .. pushed .. sub(old_N, again)
      else
        new_N = limits .. head .. pushed .. sub(old_N, again)
      end
    elseif from < to then
      new_N = limits .. head .. sub(old_N, from, to - 1) .. pushed
    else
      new_N = limits .. head .. pushed
    end
  end
  -- end each
  call('HSET', BOOK, rid, write(ENDED, 'S', forgotten_ms), '@tenant', new_1, name_2, new_2, name_3,
    new_3, name_4, new_4)
  call('ZADD', DUE, FORGET + forgotten_ms, rid)
  if forgotten_ms < next_due then
    call('HSET', BOOK, '@', write(META, sequences_from, tokens_from, forgotten_ms, kept_until,
      tracked))
  end
  do
    return '\1'
  end
until true
