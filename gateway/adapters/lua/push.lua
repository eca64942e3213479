      -- The newest cell becomes one of the older ones. What does not fit into a NARROW one is left to
      -- the rest.
      if newest == 0 then
        oldest = now_s
      elseif cell_tokens < TOKENS_FIT and cell_requests < REQUESTS_FIT and cell_tokens >= 0
        and cell_requests >= 0 then
        pushed = write(NARROW, newest % 256, cell_tokens, cell_requests)
      else
        break
      end
