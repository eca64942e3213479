-- What has lapsed is let go, some of it at once (domain/queue/pool.Pool).
local function reap()
  local due = call('ZRANGEBYSCORE', DUE, '-inf', now, 'LIMIT', 0, REAPED_AT_ONCE + 1)
  unfinished = #due > REAPED_AT_ONCE and 1 or 0
  for at = 1, math.min(#due, REAPED_AT_ONCE) do
    local ticket = load_ticket(due[at])
    if ticket[K_STATE] >= WAITING_STATE then
      withdraw(ticket)
    else
      local ran = ticket[K_STATE] == S_HELD or ticket[K_STATE] == S_BEGAN
      free(ticket, ran and ticket[K_COST] or 0)
    end
  end
end
