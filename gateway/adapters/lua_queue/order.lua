-- Who is granted next, on which worker (domain/queue/order.Order).
local function is_well(worker)
  for _, room in ipairs(rooms) do
    if room[R_ID] == worker then
      return room[R_WELL_UNTIL] > now
    end
  end
  return false
end

-- The most sequences and tokens that any one worker has left: what needs more is passed over at once.
local function widest(most)
  local sequences, tokens = 0, -1
  for _, room in ipairs(rooms) do
    if room[R_WELL_UNTIL] > now then
      if room[R_RUNNING] == 0 then
        return math.huge, math.huge
      end
      local free_sequences = room[most] - room[R_RUNNING]
      local free_tokens = room[R_TOKENS_MAX] - room[R_TOKENS]
      if free_sequences > 0 and free_tokens >= 0 then
        sequences = math.max(sequences, free_sequences)
        tokens = math.max(tokens, free_tokens)
      end
    end
  end
  return sequences, tokens
end

-- The worker that would be kept, though not the one `but_for`, and how many are well.
local function emptiest(but_for)
  local found, well = nil, 0
  for _, room in ipairs(rooms) do
    if room[R_WELL_UNTIL] > now then
      well = well + 1
      if room[R_ID] ~= but_for and (not found or room[R_TOKENS] < found[R_TOKENS]) then
        found = room
      end
    end
  end
  return found, well
end

-- The least full worker that takes it, but for one that is kept for another (of those kept for batch
-- only where it is taken `as_batch` or it is the floor's turn); for batch also none on which room is
-- being made for interactive requests that wait.
local function worker_for(id, sequences, need, look)
  local as_batch, is_contested, most = look.as_batch, look.is_contested, look.most
  local kept, kept_too = kept_from(id, as_batch or look.is_floor)
  local best, least
  for _, room in ipairs(rooms) do
    if room[R_ID] ~= kept and room[R_ID] ~= kept_too
      and takes(room, room[R_RUNNING], room[R_TOKENS], sequences, need, room[most])
      and not (as_batch and is_contested and room[R_BACK] > 0) then
      local full = fill(room)
      if not best or full < least then
        best, least = room, full
      end
    end
  end
  return best
end

-- For how long no worker is kept after this one was kept for the request, 1/1000 of that time.
local function rest_permille(room, well, band, sequences, need)
  local most = room[band == 1 and R_BATCH_MAX or R_SEQUENCES_MAX]
  local width = math.min(1000, math.max(floor(sequences * 1000 / math.max(1, most)),
    floor(need * 1000 / math.max(1, room[R_TOKENS_MAX]))))
  return math.max(0, floor(IDLED_AT_MOST * width / well) - 1000)
end

local function is_narrow(look, sequences, need)
  return look.emptiest
    and rest_permille(look.emptiest, look.well, look.band, sequences, need) == 0
end

-- Looks at the member of one that waits; its id begins at `from`. `look` is what is known of its
-- band: the found `id` and `room`, else the `first` that has no room, whether the one was `seen`
-- that others are granted past, and, while no worker is kept for wide ones, the first `narrow` one.
local function has_room(look, member, from)
  local sequences, need = tonumber(sub(member, -18, -13)), tonumber(sub(member, -12))
  local id = sub(member, from, -21)
  look.count = look.count + 1
  if sequences <= look.sequences and need <= look.tokens then
    local room = worker_for(id, sequences, need, look)
    if room then
      look.id, look.room, look.is_narrow = id, room, is_narrow(look, sequences, need)
      return true
    end
  end
  look.first = look.first or id
  look.narrow = look.narrow or is_narrow(look, sequences, need) and id
  look.seen = look.seen or id == look.overtaken
  return false
end

-- In turn, until one has room. Those that are `passed` were looked at before.
local function look_in_turn(look, band, passed)
  local next_in_turn, names = in_turn(band), nil
  repeat
    names = next_in_turn(names and 8 or 1)
    for _, name in ipairs(names) do
      if name == AT then
        return
      end
      local from, offset = #name + 18, 0
      local members = waiting_of(name, band, 0, 1)
      repeat
        for _, member in ipairs(members) do
          if not (passed and passed[sub(member, from, -21)])
            and (has_room(look, member, from) or look.count >= LOOKED_AT) then
            return
          end
        end
        offset = offset + 1
        members = offset == 1 and waiting_of(name, band, 1, OF_A_TENANT - 1) or {}
      until #members == 0
    end
  until #names == 0
end

-- The promoted first; of those that are not, whose turn it is.
local function look_at_batch(look)
  local promoted = call('ZRANGEBYSCORE', PROMOTE, '-inf', now, 'LIMIT', 0, LOOKED_AT)
  local passed = {}
  for _, member in ipairs(promoted) do
    if has_room(look, member, 1) then
      return
    end
    passed[sub(member, 1, -21)] = true
  end
  if look.count < LOOKED_AT then
    look_in_turn(look, 1, passed)
  end
end

local function is_resting(b)
  return pool[P_BYPASS_WORKER + b] == '' and now < pool[P_BYPASS_RESTS + b]
end

local function new_look(band, most, as_batch, is_contested)
  local sequences, tokens = widest(most)
  local look = {
    count = 0, most = most, as_batch = as_batch, is_contested = is_contested, band = band,
    sequences = sequences, tokens = tokens, overtaken = pool[P_BYPASS_ID + OF_BAND_P * band],
  }
  -- Where a worker is kept the rest may begin with this grant.
  if is_resting(OF_BAND_P * band) or pool[P_BYPASS_WORKER + OF_BAND_P * band] ~= '' then
    look.emptiest, look.well = emptiest()
  end
  return look
end

-- Of those of a band that are overtaken now: its ticket, for how long none is kept after one was kept
-- for it, and whether none is kept for wide ones now. `kept` is the emptiest worker of `well`.
local function whose_turn(band, look, kept, well)
  local b = OF_BAND_P * band
  local id, first, rest = pool[P_BYPASS_ID + b], nil, nil
  local function consider(one)
    id, first = one, load_ticket(one)
    rest = rest_permille(kept, well, band, first[K_SEQUENCES], first[K_NEED])
  end
  local is_held, rests = id ~= '', is_resting(b)
  local is_wide = pool[P_BYPASS_REST + b] > 0
  if is_held and look.seen then
    consider(id)
    is_wide = rest > 0
  end
  if rests and look.narrow and (is_wide or not is_held) then
    pool[P_BYPASS_TOKENS + b] = 0
    consider(look.narrow)
  elseif not is_held and look.first then
    consider(look.first)
  end
  if first then
    pool[P_BYPASS_ID + b] = id
  end
  return first, rest, rests
end

-- `by` is granted past those of a band that were looked at (domain/queue/bypass.Bypass.passed).
local function pass(band, look, by, keeps)
  if not look.first then
    return
  end
  local b = OF_BAND_P * band
  local kept, well = emptiest()
  local first, rest, rests = whose_turn(band, look, kept, well)
  if not first then
    return
  end
  pool[P_BYPASS_TOKENS + b] = pool[P_BYPASS_TOKENS + b] + by[K_COST]
  if pool[P_BYPASS_WORKER + b] ~= '' then
    return
  end
  pool[P_BYPASS_REST + b] = rest
  if keeps and (order_band(by) > order_band(first) or pool[P_BYPASS_TOKENS + b] >= first[K_COST])
    and not (rests and rest > 0) then
    pool[P_BYPASS_WORKER + b], pool[P_BYPASS_KEPT + b] = kept[R_ID], now
  end
end

-- It is batch's turn, and whoever goes first in it has no room (domain/queue/bypass.Bypass.due).
local function due(look)
  local b = OF_BAND_P
  local free = emptiest(pool[P_BYPASS_WORKER])
  if not look.first or not free then
    return
  end
  local kept, well = emptiest()
  local first, rest, rests
  if not look.id then
    first, rest, rests = whose_turn(1, look, kept, well)
  elseif look.seen then
    first, rests = load_ticket(pool[P_BYPASS_ID + b]), is_resting(b)
    rest = rest_permille(kept, well, 1, first[K_SEQUENCES], first[K_NEED])
    first = pool[P_BYPASS_TOKENS + b] >= first[K_COST] and first or nil
  end
  if first then
    pool[P_BYPASS_REST + b] = rest
    if not (rests and rest > 0) then
      pool[P_BYPASS_WORKER + b], pool[P_BYPASS_KEPT + b] = free[R_ID], now
    end
  end
end

-- A worker that is not well is kept for nobody, and none for ever.
local function let_go()
  for b = 0, OF_BAND_P, OF_BAND_P do
    local worker = pool[P_BYPASS_WORKER + b]
    if worker ~= '' and not is_well(worker) then
      pool[P_BYPASS_WORKER + b], pool[P_BYPASS_KEPT + b] = '', 0
    elseif worker ~= '' and pool[P_BYPASS_KEPT + b] + KEPT_MS <= now then
      clear_bypass(b)
    end
  end
end

-- The next grant: its ticket, its worker, and 1 where it is batch that took interactive's turn.
-- Counts it as made.
local function choose()
  let_go()
  local waiting, waiting_batch = pool[P_COUNT], pool[P_COUNT + OF_BAND_P]
  local is_contested = waiting > 0 and waiting_batch > 0
  local none = {}
  local first, second = none, none
  if waiting > 0 then
    first = new_look(0, R_SEQUENCES_MAX, false, is_contested)
    if first.sequences > 0 or widest(R_BATCH_MAX) > 0 then
      look_in_turn(first, 0)
    end
  end
  local is_floor = is_contested and pool[P_CREDIT] >= CREDIT and first.id
  if waiting_batch > 0 and (is_floor or not first.id) then
    second = new_look(1, is_floor and R_SEQUENCES_MAX or R_BATCH_MAX, not is_floor, is_contested)
    local kept_for = P_BYPASS_WORKER + OF_BAND_P
    if second.sequences > 0 and not (is_floor and pool[kept_for] ~= '') then
      look_at_batch(second)
    end
    if is_floor and pool[kept_for] == '' then
      due(second)
    end
    if is_floor and pool[kept_for] ~= '' then
      -- Of batch only the one that it is kept for, and nobody else there.
      local ticket = load_ticket(pool[P_BYPASS_ID + OF_BAND_P])
      second = new_look(1, R_SEQUENCES_MAX, false, true)
      if not has_room(second, ticket[K_ID] .. '\0' .. size(ticket), 1) then
        first = new_look(0, R_SEQUENCES_MAX, false, true)
        first.is_floor = true
        look_in_turn(first, 0)
      end
    end
  end
  local found = second.id and second or first
  if not found.id then
    return nil
  end
  local ticket = load_ticket(found.id)
  local takes_turn = is_floor and second.id
  if is_contested then
    pool[P_CREDIT] = math.min(pool[P_CREDIT] + floor_permille, 2 * CREDIT)
      - (takes_turn and CREDIT or 0)
  end
  left_order(found.id)
  if takes_turn then
    -- Whose turn it took is overtaken: it waits for no second one.
    first = {
      first = first.id, seen = first.id == first.overtaken,
      narrow = first.is_narrow and first.id,
    }
  end
  pass(0, first, ticket, true)
  if found == second then
    pass(1, second, ticket, not takes_turn)
  end
  return ticket, found.room[R_ID], takes_turn and 1 or 0
end
