-- Until at least so much has aged out, ms (window.Window.wait_ms); after `advance`.
local function wait_ms(s, excess_tokens, excess_requests)
  local last, tokens, requests = now_s, 0, 0
  for at = s[FROM], #s[CELLS], s[CELL_SIZE] do
    local cell_s, cell_tokens, cell_requests = older(s, at)
    last, tokens, requests = cell_s, tokens + cell_tokens, requests + cell_requests
    if tokens >= excess_tokens and requests >= excess_requests then
      return math.max(1, (last + WINDOW_S) * 1000 - now_ms)
    end
  end
  if s[NEWEST] > 0 then
    last = s[NEWEST]
  end
  return math.max(1, (last + WINDOW_S) * 1000 - now_ms)
end
