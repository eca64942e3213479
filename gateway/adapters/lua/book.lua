-- Shared by every script of the ledger, joined in front of it with window.lua, money.lua and
-- reap.lua. Executes gateway/domain/admission*.py: change those first, the property test compares.
--
-- KEYS, all with the tenant as hash tag:
--   1 book    hash  '@'         -> sequences complete from, tokens complete from, next instant at
--                                  which something is due, kept until (4 doubles, ms)
--                   '@' scope   -> its limits and its use (HEAD), then its window's cells (CELL)
--                   request id  -> 'L' live, 'P' lapsed: LEASE then month|key|model;
--                                  'S' settled: forgotten at (a double)
--   2 leases  zset  request id  -> lapses at, ms
--   3 lapsed  zset  request id  -> forgotten at, ms
--   4 forget  zset  request id of a settled one -> forgotten at; '@' scope -> looked at again at
--   5 money   hash  month       -> tracked since, known (2 doubles); month/scope -> FUND
--   6 recent  hash  request id settled since its month was begun -> month
-- Keys 2 to 4 hold one member more, '@', that is never due: so no key goes away and comes back
-- without its time to live. Keys 1 to 4 live KEPT_S after their last use, which is longer than
-- anything in them counts; 5 from when a month is begun until it cannot count; 6 while one is open.
--
-- ARGV[1] is the time in Unix ms, or empty for the server's own. Numbers are integers in doubles.
-- Limits are 6 doubles a scope: version, sequences, tpm, rpm, budget (units, pico); -1 is none.
-- Every reply is an array; {-1} is: nothing is known of this tenant, call begin.lua and repeat;
-- {-2}: more leases have lapsed than one call takes care of, repeat. Neither has done anything else.
local BOOK, LEASES, LAPSED, FORGET, MONEY, RECENT = unpack(KEYS)
local UNBORN, AGAIN = { -1 }, { -2 }
local KEPT_S, KEPT_AGAIN_MS = 7200, 5400000
local LAPSED_KEEP_MS, SETTLED_KEEP_MS, SETTLED_GRID_MS, SCOPE_KEEP_S = 3600000, 60000, 4000, 3600
local NEVER = '9007199254740992' -- the score of '@'
local META = '<dddd'
local LIMITS, LIMITS_SIZE = '<dddddd', 48
local HEAD, HEAD_SIZE = '<ddddddddddd', 88
local LEASE, LEASE_SIZE = '<dddddd', 48
local NO_LIMITS = struct.pack(LIMITS, -1, -1, -1, -1, -1, 0)

local now_ms
if ARGV[1] == '' then
  local t = redis.call('TIME')
  now_ms = t[1] * 1000 + math.floor(t[2] / 1000)
else
  now_ms = tonumber(ARGV[1])
end
local now_s = math.floor(now_ms / 1000)

local scopes, written = {}, {}
local sequences_from, tokens_from, next_due, kept_until
local meta_changed = false

local function scope_names(key, model)
  return 'tenant', 'key:' .. key, 'model:' .. model, 'key:' .. key .. '/model:' .. model
end

-- Numbers of one scope from its record. What is long idle is as good as forgotten.
local function parse_scope(name, record)
  local s
  if record then
    local version, sequences, tpm, rpm, budget, budget_pico, running, tokens, requests, reached,
      seen = struct.unpack(HEAD, record)
    if seen > now_s - SCOPE_KEEP_S or running > 0 then
      s = { name = name, limits = string.sub(record, 1, LIMITS_SIZE), version = version,
        sequences = sequences, tpm = tpm, rpm = rpm, budget = budget, budget_pico = budget_pico,
        running = running, tokens = tokens, requests = requests, reached = reached, seen = seen,
        cells = string.sub(record, HEAD_SIZE + 1), changed = false }
    end
  end
  if not s then
    s = { name = name, limits = NO_LIMITS, version = -1, sequences = -1, tpm = -1, rpm = -1,
      budget = -1, budget_pico = 0, running = 0, tokens = 0, requests = 0, reached = 0,
      seen = now_s, cells = '', changed = false, is_new = true }
  end
  scopes[name] = s
  return s
end

local function scope_of(name)
  return scopes[name] or parse_scope(name, redis.call('HGET', BOOK, '@' .. name))
end

local function touch(s)
  s.changed = true
  if s.seen < now_s then
    s.seen = now_s
  end
end

-- Read the book: these scopes, and these records by request id. Returns the records' table, as
-- HMGET gives it; nil where the tenant is not known.
local function open(names, rids)
  local fields = { '@' }
  for i = 1, #names do
    fields[i + 1] = '@' .. names[i]
  end
  for i = 1, #rids do
    fields[#fields + 1] = rids[i]
  end
  local found = redis.call('HMGET', BOOK, unpack(fields))
  if not found[1] then
    return nil
  end
  sequences_from, tokens_from, next_due, kept_until = struct.unpack(META, found[1])
  for i = 1, #names do
    parse_scope(names[i], found[i + 1])
  end
  local records = {}
  for i = 1, #rids do
    records[i] = found[i + 1 + #names]
  end
  return records
end

local function due_at(ms)
  if ms < next_due then
    next_due, meta_changed = ms, true
  end
end

local function parse_lease(record)
  local sequences, tokens, second, cost, cost_pico, forgotten = struct.unpack(LEASE, record, 2)
  local month, key, model =
    string.match(string.sub(record, LEASE_SIZE + 2), '^([^|]*)|([^|]*)|(.*)$')
  return { state = string.sub(record, 1, 1), sequences = sequences, tokens = tokens,
    second = second, cost = cost, cost_pico = cost_pico, forgotten = forgotten, month = month,
    key = key, model = model }
end

local function pack_lease(state, lease, forgotten)
  return state .. struct.pack(LEASE, lease.sequences, lease.tokens, lease.second, lease.cost,
    lease.cost_pico, forgotten) .. lease.month .. '|' .. lease.key .. '|' .. lease.model
end

-- The state of a record that is not forgotten yet: 'L', 'P', 'S' or nil.
local function state_of(record)
  if not record then
    return nil
  end
  local state = string.sub(record, 1, 1)
  if state == 'S' and struct.unpack('<d', record, 2) <= now_ms then
    return nil
  end
  if state == 'P' then
    local _, _, _, _, _, forgotten = struct.unpack(LEASE, record, 2)
    if forgotten <= now_ms then
      return nil
    end
  end
  return state
end

local function scopes_of(lease)
  local tenant, key, model, both = scope_names(lease.key, lease.model)
  return { scope_of(tenant), scope_of(key), scope_of(model), scope_of(both) }
end

-- The newer of the limits offered and those known, kept for the next caller.
local function offer(s, offered)
  if offered == s.limits then
    return
  end
  local version, sequences, tpm, rpm, budget, budget_pico = struct.unpack(LIMITS, offered)
  if s.version <= version then
    s.limits, s.version, s.sequences, s.tpm, s.rpm = offered, version, sequences, tpm, rpm
    s.budget, s.budget_pico = budget, budget_pico
    touch(s)
  end
end

-- Write back what changed, in one command; prolong the keys' time to live where it is time.
local function save()
  local fields, n = {}, 0
  for name, s in pairs(scopes) do
    if s.changed then
      fields[n + 1] = '@' .. name
      fields[n + 2] = s.limits .. struct.pack('<ddddd', s.running, s.tokens, s.requests,
        s.reached, s.seen) .. s.cells
      n = n + 2
      if s.is_new then
        local again = (s.seen + SCOPE_KEEP_S) * 1000
        redis.call('ZADD', FORGET, again, '@' .. name)
        due_at(again)
      end
    end
  end
  for rid, record in pairs(written) do
    fields[n + 1], fields[n + 2] = rid, record
    n = n + 2
  end
  local left_ms = kept_until - now_ms
  local is_prolonged = left_ms < KEPT_AGAIN_MS or left_ms > KEPT_S * 1000
  if is_prolonged then
    kept_until, meta_changed = now_ms + KEPT_S * 1000, true
  end
  if meta_changed then
    fields[n + 1] = '@'
    fields[n + 2] = struct.pack(META, sequences_from, tokens_from, next_due, kept_until)
    n = n + 2
  end
  if n > 0 then
    redis.call('HSET', BOOK, unpack(fields))
  end
  if is_prolonged then
    for i = 1, 4 do
      redis.call('EXPIRE', KEYS[i], KEPT_S)
    end
  end
end
