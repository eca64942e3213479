-- Batch is asked back for interactive requests that wait (domain/queue/order.take_back). Inside a
-- function: it is seldom needed.
-- The batch places of a worker that may go, newest first. One that was promoted since is struck off.
local function newest(room, left, at)
  local members, worker = left.members, room[R_ID]
  while at > #members do
    local more = call('ZRANGEBYLEX', TAKEABLE, '[' .. worker .. '\0', '(' .. worker .. '\1',
      'LIMIT', #members, 32)
    if #more == 0 then
      return nil
    end
    for _, member in ipairs(more) do
      if tonumber(sub(member, -35, -20)) > now then
        members[#members + 1] = member
      else
        call('ZREM', TAKEABLE, member)
        room[R_MAY_SEQUENCES] = room[R_MAY_SEQUENCES] - tonumber(sub(member, -18, -13))
        room[R_MAY_TOKENS] = room[R_MAY_TOKENS] - tonumber(sub(member, -12))
      end
    end
  end
  return members[at]
end

-- The plan of one worker: how many of its newest batch places must go, behind those that go already,
-- so that it takes the request. Nil where all are not enough. `left` is the worker as it will be.
local function plan(room, left, sequences, need)
  local running, tokens, count = left.running, left.tokens, 0
  local most = room[R_SEQUENCES_MAX]
  if not takes(room, running - left.may_sequences, tokens - left.may_tokens, sequences, need, most)
    and not takes(room, running, tokens, sequences, need, most) then
    return nil
  end
  while not takes(room, running, tokens, sequences, need, most) do
    count = count + 1
    local member = newest(room, left, left.gone + count)
    if not member then
      return nil
    end
    running = running - tonumber(sub(member, -18, -13))
    tokens = tokens - tonumber(sub(member, -12))
  end
  return count, running, tokens
end

-- The first that wait in interactive's order, some of them.
local function first_waiting(count)
  local members, names = {}, {}
  local next_in_turn, page = in_turn(0), nil
  repeat
    page = next_in_turn(count)
    for _, name in ipairs(page) do
      if name == AT then
        return members, names
      end
      for _, member in ipairs(waiting_of(name, 0, 0, math.min(OF_A_TENANT, count - #members))) do
        members[#members + 1], names[#members + 1] = member, name
      end
      if #members == count then
        return members, names
      end
    end
  until #page == 0
  return members, names
end

  local lefts = {}
  for at, room in ipairs(rooms) do
    lefts[at] = {
      running = room[R_RUNNING] - room[R_BACK_SEQUENCES],
      tokens = room[R_TOKENS] - room[R_BACK_TOKENS],
      may_sequences = room[R_MAY_SEQUENCES], may_tokens = room[R_MAY_TOKENS],
      members = {}, gone = 0,
    }
  end
  local chosen = {}
  local waiting, names = first_waiting(TAKEN_BACK_FOR)
  local is_due = pool[P_CREDIT] >= CREDIT and pool[P_COUNT] > 0 and pool[P_COUNT + OF_BAND_P] > 0
  for number, ticket in ipairs(waiting) do
    if sub(ticket, -19, -19) == '0' then
      local sequences, need = tonumber(sub(ticket, -18, -13)), tonumber(sub(ticket, -12))
      local kept, kept_too = kept_from(sub(ticket, #names[number] + 18, -21), is_due)
      local best, fewest, running, tokens
      for at, room in ipairs(rooms) do
        if room[R_ID] ~= kept and room[R_ID] ~= kept_too then
          local count, after_running, after_tokens = plan(room, lefts[at], sequences, need)
          if count and (not best or count < fewest) then
            best, fewest, running, tokens = at, count, after_running, after_tokens
          end
        end
      end
      if best then
        local left = lefts[best]
        for at = left.gone + 1, left.gone + fewest do
          local member = left.members[at]
          chosen[#chosen + 1] = sub(member, #rooms[best][R_ID] + 17, -37)
          left.may_sequences = left.may_sequences - tonumber(sub(member, -18, -13))
          left.may_tokens = left.may_tokens - tonumber(sub(member, -12))
        end
        left.gone = left.gone + fewest
        left.running, left.tokens = running + sequences, tokens + need
      end
    end
  end
  for _, id in ipairs(chosen) do
    local place = load_ticket(id)
    become(place, S_TAKEN_BACK)
    tell(place, 0)
  end
