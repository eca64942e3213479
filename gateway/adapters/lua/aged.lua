    -- Of the scope in `old_N`: what is still in its window now. The cells that are left begin at
    -- `from`, the newest is that of `newest`. Leaves the usual case where the scope is idle or was
    -- under a clock that stepped back.
    local size, newest, cell_tokens, cell_requests = #old_N, 0, 0, 0
    if reached > 0 or (seen <= now_s - SCOPE_KEEP_S and running <= 0) then
      break
    end
    if size > HEAD_SIZE then
      newest, cell_tokens, cell_requests = read(CELL, old_N, size - 15)
      if newest > now_s then
        break
      end
      local second, aged_tokens, aged_requests = read(CELL, old_N, from)
      while second <= now_s - WINDOW_S do
        used, requests, from = used - aged_tokens, requests - aged_requests, from + CELL_SIZE
        if from > size then
          break
        end
        second, aged_tokens, aged_requests = read(CELL, old_N, from)
      end
    end
    if seen < now_s then
      seen = now_s
    end
