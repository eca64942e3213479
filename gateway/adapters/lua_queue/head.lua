-- The head of every script of a pool's queue. Executes gateway/domain/queue/pool.Pool, step for step:
-- change that first, the property test compares.
--
-- KEYS, all with 'pool:' and the pool's name as hash tag. BAND is 0 interactive, 1 batch:
--   1 tickets  hash  ticket id -> TICKET; AT -> POOL, its numbers and its workers'; NAMES -> of both
--   2 due      zset  ticket id -> lapses at, ms; of one that waits at the latest its deadline
--   3 takeable zset  by text: worker NUL newest-first granted-at, id NUL promoted at, SIZE of places
--                    that may be asked back
--   4 tenants  hash  tenant -> TENANT, while it has anything
--   5 parked   zset  by text: tenant NUL BAND deadline id
--   6 promote  zset  ticket id NUL SIZE of waiting batch -> promoted at, ms
--   then one of each BAND:
--   7  order   zset  by text: tenant NUL deadline id NUL SIZE of what waits
--   9  turns   zset  tenants that wait -> virtual token counter
--   11 idle    zset  tenants that neither wait nor run, where it is above the least of those -> counter
--   13 since   zset  ticket id of what waits -> entered at, ms
--   15 lots    zset  the parked ones once more, by text: tenant NUL lot NUL BAND deadline id
--   16 new     zset  of each BAND, 17 of batch: newcomers among those tenants -> their place in line
-- Each key holds one member more, AT, that comes last and stands for nobody: so no key goes away
-- and comes back without its time to live. It is kept STORED_MS after the last use, by far longer than
-- anything in them counts. No name has a NUL in it. SIZE: band 1, sequences 6, tokens 12 digits.
--
-- ARGV[1] the time in Unix ms, or empty for the server's own; [2] how long a ticket or place lives
-- unless renewed, ms; [3] batch's share while interactive waits, 1/1000; then the script's own.
-- The pool's time never steps back: after a step back of the clock it goes on from where it was.
--
-- Every reply is an array that begins with 1 where work is left for another call (tick), else 0.
-- An ANSWER is an array: {0, worker} granted; {1, own ahead, tokens ahead, wait ms or -1} queued;
-- {2, waiting} full; {3, wait ms} too long; {4} parked; {5} taken back; {6} unknown; {7} no
-- worker is well; {8} queued, without where it stands.
-- Records are little-endian doubles, exact to 2^53, and then names with a NUL between.
-- What is told to gateways goes to the channel weir:grants:<gateway>, as {id, worker, 1 granted, 0
-- taken back or 2 limits to look at}. Constants like GRANTED_AT_ONCE are the specification's, put in
-- by the loader.
local call, sub, format = redis.call, string.sub, string.format
local spack, sunpack, floor = struct.pack, struct.unpack, math.floor
local TICKETS, DUE, TAKEABLE, TENANTS, PARKED, PROMOTE =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local order_keys = {[0] = KEYS[7], KEYS[8]}
local turns_keys = {[0] = KEYS[9], KEYS[10]}
local idle_keys = {[0] = KEYS[11], KEYS[12]}
local since_keys = {[0] = KEYS[13], KEYS[14]}
local LOTS = KEYS[15]
local AT, NAMES = '\255', '\254'
local ttl_ms, floor_permille = tonumber(ARGV[2]), tonumber(ARGV[3])

local now
if ARGV[1] == '' then
  local time = call('TIME')
  now = time[1] * 1000 + floor(time[2] / 1000)
else
  now = tonumber(ARGV[1])
end

local rooms, is_renamed, behind = {}, false, nil
local kept = call('HMGET', TICKETS, AT, NAMES)
local pool, names
if kept[1] then
  pool, names = {sunpack(POOL_FORMAT, kept[1])}, cmsgpack.unpack(kept[2])
  local position = pool[#pool]
  for at = 5, #names do
    rooms[at - 4] = {names[at], sunpack(ROOM_FORMAT, kept[1], position)}
    position = rooms[at - 4][ROOM_FIELDS + 1]
  end
  behind = position
  now = now + pool[P_SHIFT]
  if now < pool[P_LAST] then
    pool[P_SHIFT] = pool[P_SHIFT] + pool[P_LAST] - now
    now = pool[P_LAST]
  end
else
  pool = {
    now, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0,
  }
  names, is_renamed = {'', '', '', ''}, true
  call('HSET', TENANTS, AT, '')
  for key = 1, #KEYS do
    if KEYS[key] ~= TICKETS and KEYS[key] ~= TENANTS then
      local by_text = KEYS[key] == TAKEABLE or KEYS[key] == PARKED or KEYS[key] == LOTS
        or key == 7 or key == 8
      call('ZADD', KEYS[key], by_text and 0 or 'inf', AT)
    end
  end
end
pool[P_BYPASS_ID], pool[P_BYPASS_WORKER] = names[1], names[2]
pool[P_BYPASS_ID + OF_BAND_P], pool[P_BYPASS_WORKER + OF_BAND_P] = names[3], names[4]
-- What came with later releases stands behind the workers: a gateway of the one before drops it.
pool[P_BYPASS_REST], pool[P_BYPASS_RESTS],
  pool[P_BYPASS_REST + OF_BAND_P], pool[P_BYPASS_RESTS + OF_BAND_P] = 0, 0, 0, 0
if kept[1] and #kept[1] >= behind + 31 then
  pool[P_BYPASS_REST], pool[P_BYPASS_RESTS], pool[P_BYPASS_REST + OF_BAND_P],
    pool[P_BYPASS_RESTS + OF_BAND_P] = sunpack('<dddd', kept[1], behind)
end
local news
if kept[1] and #kept[1] >= behind + 95 then
  news = {sunpack('<dddddddd', kept[1], behind + 32)}
else
  -- What runs of each band is not known: all of it, and weights are at least 1.
  local expected = pool[P_RUNNING_COST] * UNITS
  news = {0, 0, 0, expected, 0, 0, 0, expected}
  -- One that knows no newcomers may have granted them: they wait on as others do.
  for band = 0, kept[1] and 1 or -1 do
    call('ZREMRANGEBYRANK', KEYS[16 + band], 0, -2)
    if call('ZADD', KEYS[16 + band], 'inf', AT) == 1 then
      pool[P_KEPT_UNTIL] = 0
    end
  end
end
local unfinished = 0

-- One TENANT for each that this step touches, written at its end. Behind it, while it is a newcomer
-- in a band, its own counters: kept as -1, and here nil, where it is none.
local tenants = {}
local function tenant_from(kept)
  local tenant = {sunpack(TENANT_FORMAT, kept)}
  tenant[T_OWN] = nil
  if #kept > TENANT_BYTES then
    local own, of_batch = sunpack('<dd', kept, TENANT_BYTES + 1)
    tenant[T_OWN], tenant[T_OWN + 1] = own >= 0 and own or nil, of_batch >= 0 and of_batch or nil
  end
  return tenant
end

local function tenant_of(name)
  local tenant = tenants[name]
  if not tenant then
    tenant = call('HGET', TENANTS, name)
    tenant = tenant and tenant_from(tenant) or {0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0}
    tenants[name] = tenant
  end
  return tenant
end

-- Of each band the newcomer of this step, one at most, kept at its end: most do not wait so long.
local fresh = {}

-- The step is done: write what it changed. Returns its reply, with what is left to do put in front.
local function done(reply)
  local changed = {}
  for name, tenant in pairs(tenants) do
    if tenant[1] + tenant[T_RUNNING] + tenant[T_RUNNING + OF_BAND_T] == 0 then
      call('HDEL', TENANTS, name)
    else
      changed[#changed + 1] = name
      local packed = spack(TENANT_FORMAT, unpack(tenant, 1, TENANT_FIELDS))
      if tenant[T_OWN] or tenant[T_OWN + 1] then
        packed = packed .. spack('<dd', tenant[T_OWN] or -1, tenant[T_OWN + 1] or -1)
      end
      changed[#changed + 1] = packed
    end
  end
  for at = 1, #changed, 128 do
    call('HSET', TENANTS, unpack(changed, at, math.min(at + 127, #changed)))
  end
  for band, name in pairs(fresh) do
    call('ZADD', KEYS[16 + band], news[N_TURN + OF_BAND_N * band], name)
  end
  pool[P_LAST] = now
  local is_kept = now < pool[P_KEPT_UNTIL]
  if not is_kept then
    pool[P_KEPT_UNTIL] = now + STORED_AGAIN_MS
  end
  local parts = {spack(POOL_FORMAT, unpack(pool, 1, POOL_FIELDS))}
  for at, room in ipairs(rooms) do
    parts[at + 1] = spack(ROOM_FORMAT, unpack(room, 2, ROOM_FIELDS))
  end
  local b = OF_BAND_P
  parts[#parts + 1] = spack('<dddddddddddd', pool[P_BYPASS_REST], pool[P_BYPASS_RESTS],
    pool[P_BYPASS_REST + b], pool[P_BYPASS_RESTS + b], unpack(news, 1, 8))
  call('HSET', TICKETS, AT, table.concat(parts))
  if is_renamed or names[1] ~= pool[P_BYPASS_ID] or names[2] ~= pool[P_BYPASS_WORKER]
    or names[3] ~= pool[P_BYPASS_ID + b] or names[4] ~= pool[P_BYPASS_WORKER + b] then
    names = {
      pool[P_BYPASS_ID], pool[P_BYPASS_WORKER], pool[P_BYPASS_ID + b], pool[P_BYPASS_WORKER + b],
    }
    for at, room in ipairs(rooms) do
      names[at + 4] = room[R_ID]
    end
    call('HSET', TICKETS, NAMES, cmsgpack.pack(names))
  end
  if not is_kept then
    for key = 1, #KEYS do
      call('PEXPIRE', KEYS[key], STORED_MS)
    end
  end
  table.insert(reply, 1, unfinished)
  return reply
end
