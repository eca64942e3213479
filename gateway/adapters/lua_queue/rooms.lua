-- Workers, in the order of their ids, and the places on them (domain/queue/capacity.WorkerRoom).
local function room_of(worker)
  local at = 1
  while rooms[at] and rooms[at][R_ID] < worker do
    at = at + 1
  end
  if not rooms[at] or rooms[at][R_ID] ~= worker then
    is_renamed = true
    table.insert(rooms, at, {worker, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
  end
  return rooms[at]
end

local function takes(room, running, tokens, sequences, need, most)
  if room[R_WELL_UNTIL] <= now then
    return false
  end
  return running == 0 or (running + sequences <= most and tokens + need <= room[R_TOKENS_MAX])
end

local function fill(room)
  return math.max(
    floor(room[R_RUNNING] * 1000000 / math.max(1, room[R_SEQUENCES_MAX])),
    floor(room[R_TOKENS] * 1000000 / math.max(1, room[R_TOKENS_MAX])))
end

local function takeable_member(place)
  return place[K_WORKER] .. '\0' .. format('%015d', 999999999999999 - place[K_GRANTED])
    .. place[K_ID] .. '\0' .. format('%016d', place[K_PROMOTE]) .. size(place)
end

-- What would miss its deadline if it waited again may stay, and what is the floor's.
local function may_go(place)
  return place[K_STATE] < S_BEGAN and place[K_BAND] == 1
    and place[K_TAKEN_BACK] < TAKEN_BACK_MAX and place[K_IS_FLOOR] == 0
end

-- What a place counts for on its worker: by = 1 from now on, -1 not any more.
local function count_place(place, by)
  local room, sequences, need = room_of(place[K_WORKER]), place[K_SEQUENCES], place[K_NEED]
  room[R_RUNNING] = room[R_RUNNING] + by * sequences
  room[R_TOKENS] = room[R_TOKENS] + by * need
  if place[K_STATE] == S_TAKEN_BACK then
    room[R_BACK] = room[R_BACK] + by
    room[R_BACK_SEQUENCES] = room[R_BACK_SEQUENCES] + by * sequences
    room[R_BACK_TOKENS] = room[R_BACK_TOKENS] + by * need
  elseif may_go(place) then
    -- It may have been struck off meanwhile, once it was promoted.
    local changed
    if by > 0 then
      changed = call('ZADD', TAKEABLE, 0, takeable_member(place))
    else
      changed = call('ZREM', TAKEABLE, takeable_member(place))
    end
    room[R_MAY_SEQUENCES] = room[R_MAY_SEQUENCES] + by * changed * sequences
    room[R_MAY_TOKENS] = room[R_MAY_TOKENS] + by * changed * need
  end
end

local function free(place, actual_cost)
  local name, band, weight = place[K_TENANT], order_band(place), place[K_WEIGHT]
  local tenant, running = tenant_of(name), T_RUNNING + OF_BAND_T * band
  call('HDEL', TICKETS, place[K_ID])
  call('ZREM', DUE, place[K_ID])
  correct(name, band, units(place[K_COST], weight), units(actual_cost, weight),
    place[K_STATE] == S_TAKEN_BACK)
  tenant[running] = tenant[running] - 1
  rest(name, band)
  pool[P_RUNNING_COST] = pool[P_RUNNING_COST] - place[K_COST]
  count_place(place, -1)
end

local function become(place, state)
  count_place(place, -1)
  place[K_STATE] = state
  count_place(place, 1)
  save_ticket(place)
end

-- A lost message is told again by renew, so a server that forbids PUBLISH stops nothing.
local function tell(ticket, what)
  redis.pcall('PUBLISH', 'weir:grants:' .. ticket[K_GATEWAY],
    cmsgpack.pack({ticket[K_ID], ticket[K_WORKER], what}))
end
