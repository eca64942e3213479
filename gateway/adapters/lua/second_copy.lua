-- Writes copies of what a gateway's journal holds and Postgres lacks, and takes out what it has.
--
-- KEYS[1] the gateway's hash: a field for each request, an admission (A...) or an end (E...), and
-- `@`, the number of the last write. ARGV[1] this write's number, [2] how many fields it may have,
-- [3] how many to take out; their names follow, then pairs of name and value.
-- Returns the number of the write before (0: there was none, so what was there is lost), how many
-- fields there are now, and how many values found no room. An admission never replaces anything,
-- and an end that is copied again changes nothing; where there is no room an end still replaces its
-- admission.
local key, room = KEYS[1], tonumber(ARGV[2])
local before = redis.call('HGET', key, '@') or '0'
local first = 4 + tonumber(ARGV[3])
if first > 4 then redis.call('HDEL', key, unpack(ARGV, 4, first - 1)) end
redis.call('HSET', key, '@', ARGV[1])
room = room - (redis.call('HLEN', key) - 1)
local refused = 0
for i = first, #ARGV, 2 do
  local is_end = string.byte(ARGV[i + 1]) == 69
  if room > 0 then
    room = room - redis.call(is_end and 'HSET' or 'HSETNX', key, ARGV[i], ARGV[i + 1])
  elseif redis.call('HEXISTS', key, ARGV[i]) == 0 then
    refused = refused + 1
  elseif is_end then
    redis.call('HSET', key, ARGV[i], ARGV[i + 1])
  end
end
return { before, redis.call('HLEN', key) - 1, refused }
