-- It runs from now on, if it did not wait or run before; before its TENANT says so.
local function activate(name, band)
  local tenant, t = tenant_of(name), OF_BAND_T * band
  if not is_active(tenant, t) then
    tenant[T_COUNTER + t] = math.max(remembered(name, band), lowest(band))
  end
end
