-- Begin a tenant's part of the store, unless that was done (admission_state.begin).
-- Keys 1 and 2 end in the same instant, so the book does not go alone: where the other is still there
-- it was taken away (evicted, deleted), and what it held is lost now.
-- ARGV: 1 now, 2 sequences are complete from, 3 tokens are complete from, Unix ms, 4 time to live of
--       a lease, ms
-- Reply: {1 begun now, 0 before}
if redis.call('HEXISTS', BOOK, '@') == 1 then
  return { 0 }
end
local sequences_from, tokens_from = tonumber(ARGV[2]), tonumber(ARGV[3])
if redis.call('EXISTS', DUE) > 0 then
  sequences_from = math.max(sequences_from, now_ms + tonumber(ARGV[4]))
  tokens_from = math.max(tokens_from, now_ms + WINDOW_S * 1000)
end
redis.call('DEL', BOOK, DUE, RECENT)
redis.call('ZADD', DUE, NEVER, '@')
-- Where a month's money is still there, nothing is held any more that it was reserved for.
local money = redis.call('HGETALL', MONEY)
for i = 1, #money, 2 do
  if string.find(money[i], '@', 1, true) then
    local spent, spent_pico = struct.unpack(FUND, money[i + 1])
    redis.call('HSET', MONEY, money[i], struct.pack(FUND, spent, spent_pico, 0, 0))
  end
end
close({ sequences_from, tokens_from, tonumber(NEVER), 0, #money > 0 and 1 or 0, true })
return { 1 }
