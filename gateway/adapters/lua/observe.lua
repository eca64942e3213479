-- Limits in force and use now (admission.observe).
-- ARGV: 1 now, then for each scope: scope, version, max_sequences, tpm, rpm (-1: none)
-- Reply: {leases held, lapsed remembered, uses…}
reap()
local reply = { redis.call('ZCARD', KEYS[LEASES]), redis.call('ZCARD', KEYS[LAPSED]) }
return append_uses(reply, read_scopes(2))
