-- The newer of the limits offered and those known, kept for the next caller
-- (admission_state.in_force). Returns whether those known are newer.
local function offer(s, offered, at)
  local version, sequences, tpm, rpm, budget, budget_pico = struct.unpack(LIMITS, offered, at)
  if s[VERSION] > version then
    return true
  end
  if s[VERSION] < version or s[SEQUENCES] ~= sequences or s[TPM] ~= tpm or s[RPM] ~= rpm
    or s[BUDGET] ~= budget or s[BUDGET_PICO] ~= budget_pico then
    s[VERSION], s[SEQUENCES], s[TPM], s[RPM] = version, sequences, tpm, rpm
    s[BUDGET], s[BUDGET_PICO] = budget, budget_pico
    touch(s)
  end
  return false
end

local function reset_ms(s)
  if s[NEWEST] == 0 then
    return 0
  end
  return math.max(0, (s[NEWEST] + WINDOW_S) * 1000 - now_ms)
end
