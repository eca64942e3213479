      -- Of the scope in `old_N`: what is still in its window now. Of the older cells those that are
      -- left begin at `from`. Leaves the usual case where the scope is idle, is marked, or the clock
      -- stepped back.
      if newest > now_s or (seen <= idle_s and running <= 0) then
        break
      end
      if oldest <= aged_s then
        if newest <= aged_s then
          used, requests, oldest, newest, from = 0, 0, 0, 0, size + 1
        else
          repeat
            local _, aged_tokens, aged_requests = read(NARROW, old_N, from)
            used, requests, from = used - aged_tokens, requests - aged_requests, from + NARROW_SIZE
            oldest = newest
            if from <= size then
              oldest = newest - (newest - byte(old_N, from)) % 256
            end
          until oldest > aged_s
        end
      end
      if seen < now_s then
        seen = now_s
      end
