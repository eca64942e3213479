-- A gateway's part of one slice, in the place of what it told of it before.
--
-- KEYS[1] the slice; ARGV[1] whose field; ARGV[2] what was measured; ARGV[3] how long the slice is
-- kept (ms). `version` counts the writes, so that who reads need not read what it knows.
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('HINCRBY', KEYS[1], 'version', 1)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
