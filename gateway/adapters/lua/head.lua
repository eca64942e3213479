-- The head of every script of the ledger. Executes gateway/domain/admission*.py: change those
-- first, the property test compares.
--
-- KEYS, all with the tenant as hash tag:
--   1 book    hash  '@'         -> META: sequences complete from, tokens complete from, next instant
--                                  at which something is due, kept until (ms), any month tracked
--                   '!'         -> STEPPED, where the clock stepped back: it had reached, time to
--                                  live ms, sequences and tokens were complete from
--                   '@' scope   -> HEAD: its limits, its use, its window's newest cell; then MARK,
--                                  where it has one; then the older cells in order, each NARROW or,
--                                  where one of them does not fit into that, each WIDE
--                   request id  -> 'L' live: LEASE, then month|key|model; 'P' lapsed: TIMED, forgotten
--                                  at, then the same; 'S' settled: TIMED, forgotten at
--   2 due     zset  request id of a live lease -> lapses at, ms; of a lapsed one -> LAPSED and
--                                  forgotten at; of a settled one -> FORGET and forgotten at
--                   '@' scope   -> FORGET and looked at again at
--                   '@'         -> NEVER: so the key does not go away and come back without its time
--                                  to live
--   3 money   hash  month's key -> MONTH: tracked since, known; month's key '@' scope -> FUND
--   4 recent  hash  request id settled since its month was begun -> month
-- 1 and 2 live KEPT_S after their last use, which is longer than anything in them counts; 3 from when
-- a month is begun until it cannot count; 4 while one is open.
--
-- ARGV[1] is the time in Unix ms, or empty for the server's own. Numbers are whole and travel as
-- little-endian doubles, exact to 2^53; money as two, units of the currency and pico below 10^12.
-- LIMITS of a scope: version, sequences, tpm, rpm, budget (units, pico); -1 is none.
-- Every reply is an array, that of a usual case bytes. {-1}: nothing is known of this tenant, call begin.lua and repeat. {-2}:
-- more leases have lapsed than one call takes care of, repeat. Nothing else was done then.
--
-- A script makes few objects: allocating them is most of what it costs. So constants (LIKE_THIS) are
-- put in by the loader, a scope is an array, and what is seldom needed is made inside `reap`. What
-- happens most (grant.lua, finish.lua) comes first, with no function and no array of its own: what is
-- between "each scope" and "end each" the loader writes four times, N being the scope's number.
local BOOK = KEYS[1]
local DUE = KEYS[2]
local LAPSED = 1000000000000000 -- the scores of DUE from here on: beyond every time of a live lease
local FORGET = 2000000000000000
local LIVE_LAST = '999999999999999' -- text where it is only compared with: making it is dear
local LAPSED_LAST = '1999999999999999'
local KEPT_S = 7200
local KEPT_AGAIN_MS = 5400000
local LAPSED_KEEP_MS = 3600000
local SETTLED_KEEP_MS = 60000
local SETTLED_GRID_MS = 4000
local SCOPE_KEEP_S = 3600
local NEVER = '9007199254740992'

local META = '<ddddd'
local SEQUENCES_FROM = 1
local TOKENS_FROM = 2
local NEXT_DUE = 3
local KEPT_UNTIL = 4
local TRACKED = 5
local META_CHANGED = 6

local STEPPED = '<dddd'

local LIMITS = '<dddddd'
local LIMITS_SIZE = 48
local HEAD = '<dddddddddddddd'
local HEAD_FROM_LIMITS = '<c48dddddddd'
local HEAD_FROM_RUNNING = '<dddddddd'
local TAIL_AT = 113
local MARK = '<dd' -- behind a HEAD that is not usual: REACHED, and whether the older cells are WIDE
local IS_MARKED = 1099511627776 -- then this is added to NEWEST, which no clock shows
local VERSION = 1
local SEQUENCES = 2
local TPM = 3
local RPM = 4
local BUDGET = 5
local BUDGET_PICO = 6
local RUNNING = 7
local TOKENS = 8
local REQUESTS = 9
local SEEN = 10
local OLDEST = 11 -- the second of the first cell, and that of the last; 0 where there is none
local NEWEST = 12
local CELL_TOKENS = 13 -- of the last cell
local CELL_REQUESTS = 14
local REACHED = 15
local FROM = 16 -- where in CELLS the first of the older cells begins
local CELLS = 17
local CELL = 18 -- NARROW or WIDE
local CELL_SIZE = 19
local CHANGED = 20
local IS_NEW = 21

local NARROW = '<BI3I2' -- the second modulo 256, tokens, requests
local NARROW_SIZE = 6
local TOKENS_FIT = 16777216
local REQUESTS_FIT = 65536
local WIDE = '<Bdi4'
local WIDE_SIZE = 13

-- Charged at (ms, of which the second counts), sequences, tokens, cost (units, pico).
local LEASE = '<ddddd'
local LEASE_SIZE = 40
local LEASE_REST = 42 -- where month|key|model begins in a live one
local LEASE_NUMBERS = '<c1ddd'
local TIMED = '<d'
local ENDED = '<c1d' -- state, TIMED

local now_ms, now_s
if ARGV[1] == '' then
  local time = redis.call('TIME')
  local micros = time[2] + 0
  now_s = time[1] + 0
  now_ms = now_s * 1000 + (micros - micros % 1000) / 1000
else
  now_ms = tonumber(ARGV[1])
  now_s = (now_ms - now_ms % 1000) / 1000
end
