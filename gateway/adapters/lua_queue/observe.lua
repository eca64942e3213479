-- Time has passed; what is there now. Reply: how many are parked; of each band: requests, weighted
-- tokens, tokens, the oldest's wait ms, the wait of whoever came now or -1; then of each worker id,
-- its ceilings, until when it is well, running, tokens,
-- places asked back; all TENANTs as they are kept; and of each band where newcomers stand, -1
-- where there are none.
reap()
dispatch()
local bands = {}
for band = 0, 1 do
  local p, oldest = OF_BAND_P * band, call('ZRANGE', since_keys[band], 0, 0, 'WITHSCORES')
  local ahead = pool[P_TOKENS] + (band == 1 and pool[P_TOKENS + OF_BAND_P] or 0)
  bands[band + 1] = {
    pool[P_COUNT + p], pool[P_TOKENS + p], pool[P_NEED + p],
    oldest[1] == AT and 0 or now - tonumber(oldest[2]), wait_ms(ahead),
  }
end
local parked, workers = call('ZCARD', PARKED) - 1, {}
for at, room in ipairs(rooms) do
  workers[at] = {
    room[R_ID], room[R_SEQUENCES_MAX], room[R_BATCH_MAX], room[R_TOKENS_MAX],
    room[R_WELL_UNTIL], room[R_RUNNING], room[R_TOKENS], room[R_BACK],
  }
end
local reply = done({parked, bands, workers})
reply[5], reply[6] = call('HGETALL', TENANTS), {
  news[N_NEW] > 0 and news[N_LEVEL] or -1,
  news[N_NEW + OF_BAND_N] > 0 and news[N_LEVEL + OF_BAND_N] or -1,
}
return reply
