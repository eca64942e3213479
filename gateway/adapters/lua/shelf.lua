-- Scopes by name, each read once and written back together; for what touches many.
local shelf = {}

local function scope_of(name)
  local s = shelf[name]
  if not s then
    s = parse(redis.call('HGET', BOOK, '@' .. name))
    shelf[name] = s
  end
  return s
end

local function save_shelf(meta)
  for name, s in pairs(shelf) do
    save('@' .. name, s, meta)
  end
  shelf = {}
end

-- `state` is what comes before LEASE.
local function parse_lease(record)
  local at = lease_at(record)
  local charged_ms, sequences, tokens, cost, cost_pico = struct.unpack(LEASE, record, at)
  local rest = string.sub(record, at + LEASE_SIZE)
  local month, key, model = string.match(rest, '^([^|]*)|([^|]*)|(.*)$')
  return { state = string.sub(record, 1, at - 1), sequences = sequences, tokens = tokens,
    second = (charged_ms - charged_ms % 1000) / 1000, cost = cost, cost_pico = cost_pico,
    month = month, rest = rest,
    names = { 'tenant', 'key:' .. key, 'model:' .. model, 'key:' .. key .. '/model:' .. model } }
end

local function pack_lease(state, lease)
  return state .. struct.pack(LEASE, lease.second * 1000, lease.sequences, lease.tokens, lease.cost,
    lease.cost_pico) .. lease.rest
end

local function scopes_of(lease)
  local names = lease.names
  return { scope_of(names[1]), scope_of(names[2]), scope_of(names[3]), scope_of(names[4]) }
end

-- Hold a lease's sequences, or free them.
local function run(lease, list, change)
  for i = 1, 4 do
    list[i][RUNNING] = list[i][RUNNING] + change * lease.sequences
    touch(list[i])
  end
end

-- Set a lease's money aside where its month is tracked, or free it.
local function reserve(lease, is_freed)
  if (lease.cost > 0 or lease.cost_pico > 0) and tracked(lease.month) then
    for i = 1, 4 do
      change_fund(lease.month, lease.names[i], 0, 0, lease.cost, lease.cost_pico, is_freed)
    end
  end
end
