-- Whether scripts run here and may write: a refused script, a full memory and a replica all fail.
-- KEYS[1] is the ping's own.
redis.call('SET', KEYS[1], '1', 'PX', 60000)
return 1
