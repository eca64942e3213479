-- A ticket of what a gateway asked for: ARGV from `at` on has id, tenant, gateway, band, sequences,
-- tokens it comes to hold, cost, weight, how long it waits, is promoted after, has waited, how often
-- it was taken back, and its lot.
local function wished(at)
  local function number(offset)
    return tonumber(ARGV[at + offset])
  end
  return {
    WAITING_STATE, number(3), number(4), number(5), number(6), number(7),
    now - number(10), now + number(8), now + number(9), number(11), 0, 0,
    ARGV[at + 1], ARGV[at + 2], '', ARGV[at], ARGV[at + 12],
  }
end
