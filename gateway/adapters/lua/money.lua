-- The money of a month, by scope (admission_money). A double holds 2^53, less than ten thousand
-- units of a currency in pico; so an amount is two numbers, whole units and pico below PICO.
local PICO = 1000000000000
local FINISH_WITHIN_MS = 600000
local MONTH = '<dd' -- tracked since, known
local FUND = '<dddd' -- spent, reserved: each units, pico
local RECENT_TTL_S = 3600

local function add(units, pico, more_units, more_pico)
  units, pico = units + more_units, pico + more_pico
  if pico >= PICO then
    return units + 1, pico - PICO
  end
  return units, pico
end

local function subtract(units, pico, less_units, less_pico)
  units, pico = units - less_units, pico - less_pico
  if pico < 0 then
    return units - 1, pico + PICO
  end
  return units, pico
end
