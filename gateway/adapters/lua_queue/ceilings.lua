-- Gateways meet over what they know of a pool's workers: gateway/domain/queue/learned.Record.met.
--
-- KEYS: of each worker its record. ARGV[1] the time in Unix ms, or empty for the server's own; [2] how
-- long a record lives that nobody touches, ms; then of each worker what a gateway brings: a LEARNED,
-- the epoch of its samples, and their COUNTS, the last of which is when interactive was seen.
-- A record is a LEARNED and COUNTS of the same epoch, as doubles; one of another length is of another
-- release, and begins anew. Reply: the time, and of each worker its record and 1 where what was
-- brought is known from now on, else 0.
local now
if ARGV[1] == '' then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
else
  now = tonumber(ARGV[1])
end
local reply = {now}
for at = 1, #KEYS do
  local brought = {struct.unpack(BROUGHT_FORMAT, ARGV[at + 2])}
  local kept, record, taken = redis.call('GET', KEYS[at]), nil, 0
  if kept and #kept == RECORD_BYTES then
    record = {struct.unpack(RECORD_FORMAT, kept)}
  end
  if not record or brought[1] > record[1] then
    local seen = record and record[RECORD_FIELDS] or 0
    record, taken = {}, 1
    for field = 1, RECORD_FIELDS do
      record[field] = field <= LEARNED_FIELDS and brought[field] or 0
    end
    record[RECORD_FIELDS] = seen
  end
  if brought[LEARNED_FIELDS + 1] == record[1] then
    for field = LEARNED_FIELDS + 1, RECORD_FIELDS - 1 do
      record[field] = record[field] + brought[field + 1]
    end
  end
  record[RECORD_FIELDS] = math.max(record[RECORD_FIELDS], brought[RECORD_FIELDS + 1])
  local packed = struct.pack(RECORD_FORMAT, unpack(record, 1, RECORD_FIELDS))
  redis.call('SET', KEYS[at], packed, 'PX', ARGV[2])
  reply[#reply + 1] = packed
  reply[#reply + 1] = taken
end
return reply
