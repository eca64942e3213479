-- The head of every script of the ledger. Executes gateway/domain/admission*.py: change those
-- first, the property test compares.
--
-- KEYS, all with the tenant as hash tag:
--   1 book    hash  '@'         -> META: sequences complete from, tokens complete from, next instant
--                                  at which something is due, kept until (ms), any month tracked
--                   '!'         -> STEPPED, where the clock stepped back: it had reached, time to
--                                  live ms, sequences and tokens were complete from
--                   '@' scope   -> HEAD: its limits and its use; then its window's CELLs, in order
--                   request id  -> 'L' live or 'P' lapsed: LEASE, then month|key|model;
--                                  'S' settled: TIMED, forgotten at
--   2 leases  zset  request id  -> lapses at, ms
--   3 lapsed  zset  request id  -> forgotten at, ms
--   4 forget  zset  request id of a settled one -> forgotten at; '@' scope -> looked at again at
--   5 money   hash  month's key -> MONTH: tracked since, known; month's key '@' scope -> FUND
--   6 recent  hash  request id settled since its month was begun -> month
-- Keys 2 to 4 hold one member more, '@', that is never due: so no key goes away and comes back
-- without its time to live. Keys 1 to 4 live KEPT_S after their last use, which is longer than
-- anything in them counts; 5 from when a month is begun until it cannot count; 6 while one is open.
--
-- ARGV[1] is the time in Unix ms, or empty for the server's own. Numbers are whole and travel as
-- little-endian doubles, exact to 2^53; money as two, units of the currency and pico below 10^12.
-- LIMITS of a scope: version, sequences, tpm, rpm, budget (units, pico); -1 is none.
-- Every reply is an array. {-1}: nothing is known of this tenant, call begin.lua and repeat. {-2}:
-- more leases have lapsed than one call takes care of, repeat. Nothing else was done then.
--
-- A script makes few objects: allocating them is most of what it costs. So constants (LIKE_THIS) are
-- put in by the loader, a scope is an array, and what is seldom needed is made inside `reap`. What
-- happens most (grant.lua, finish.lua) comes first, with no function and no array of its own: what is
-- between "each scope" and "end each" the loader writes four times, N being the scope's number.
local BOOK = KEYS[1]
local LEASES = KEYS[2]
local LAPSED = KEYS[3]
local FORGET = KEYS[4]
local MONEY = KEYS[5]
local RECENT = KEYS[6]
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
local HEAD = '<ddddddddddd'
local HEAD_SIZE = 88
local WITHOUT = '<c48ddddd' -- HEAD from another one's limits
local WITH_CELL = '<c48dddddI4di4' -- and a CELL behind it
local VERSION = 1
local SEQUENCES = 2
local TPM = 3
local RPM = 4
local BUDGET = 5
local BUDGET_PICO = 6
local RUNNING = 7
local TOKENS = 8
local REQUESTS = 9
local REACHED = 10
local SEEN = 11
local FROM = 12 -- where in CELLS the first cell begins
local CELLS = 13
local CHANGED = 14
local NEWEST = 15 -- the second of the last cell, 0 where there is none; `advance` sets it
local IS_NEW = 16

local LEASE = '<dddddd' -- forgotten at, sequences, tokens, second, cost (units, pico)
local LEASE_REST = 50
local HELD = '<c1ddddddc0' -- state, LEASE, month|key|model
local HELD_NUMBERS = '<c1dddd'
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
