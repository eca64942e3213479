-- The slices that are not as the reader knows them.
--
-- KEYS slices; ARGV the version of each that is known, '' of one that is not. Returns for each that
-- differs its place among the keys and its fields and values, which are none where it is not there.
local changed = {}
for i = 1, #KEYS do
  if (redis.call('HGET', KEYS[i], 'version') or '') ~= ARGV[i] then
    changed[#changed + 1] = { i, redis.call('HGETALL', KEYS[i]) }
  end
end
return changed
