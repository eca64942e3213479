-- A gateway says that it is here and how far it has shipped, and learns what time it is.
--
-- KEYS[1] the hash of all gateways; ARGV[1] whose field, or '' to ask for a new instant;
-- ARGV[2] the instant it has shipped through (store ms), 0 where it knows of none.
-- KEYS[2] the hash of all journals, with ARGV[3] how far this gateway's is; it and the time are
-- entered there. An older release gives neither: what it reads stays as it was.
-- Fields: `began` (when the hash was made), `clock` (the last instant handed out), and one for
-- each gateway: `<seen>|<shipped through>`, seen by the server's own clock. Returns the present
-- instant. Instants never go back while the hash lives, also where the server's clock does; one that
-- was asked for is later than every instant handed out before.
local key, gateway, through = KEYS[1], ARGV[1], tonumber(ARGV[2])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local function whole(number) return string.format('%.0f', number) end
redis.call('HSETNX', key, 'began', whole(now))
local instant = math.max(now, tonumber(redis.call('HGET', key, 'clock') or '0'), through)
if gateway == '' then instant = instant + 1 end
redis.call('HSET', key, 'clock', whole(instant))
if gateway ~= '' then redis.call('HSET', key, gateway, whole(now) .. '|' .. whole(through)) end
if ARGV[3] then redis.call('HSET', KEYS[2], gateway, ARGV[3] .. '|' .. whole(now)) end
return whole(instant)
