-- The four scopes of a request are ARGV[3] to ARGV[5] and '@tenant'.

-- Write back all four scopes, and a request's record, in one command.
local function save_all(rid, record, list)
  local a, b, c, d = list[1], list[2], list[3], list[4]
  redis.call('HSET', BOOK, rid, record, '@tenant', packed(a), ARGV[3], packed(b), ARGV[4],
    packed(c), ARGV[5], packed(d))
  a[CHANGED], b[CHANGED], c[CHANGED], d[CHANGED] = a[IS_NEW], b[IS_NEW], c[IS_NEW], d[IS_NEW]
end
