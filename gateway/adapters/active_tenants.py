"""Which tenants may hold something, in Redis: so that any gateway finds what another left behind,
and one of them at a time looks."""

from collections.abc import Awaitable, Sequence
from typing import cast

from redis.exceptions import RedisError

from gateway.adapters.redis import RedisClient
from gateway.serving.ports import LedgerUnavailable

ACTIVE_KEY, SWEEP_KEY = "weir:active", "weir:sweep"
PAGE = 256
_READ_PAGE = "return redis.call('ZSCAN', KEYS[1], ARGV[1], 'COUNT', ARGV[2])"
_TAKE_OUT = """
for i = 2, #ARGV do
  local marked = redis.call('ZSCORE', KEYS[1], ARGV[i])
  if marked and tonumber(marked) < tonumber(ARGV[1]) then redis.call('ZREM', KEYS[1], ARGV[i]) end
end
return 0
"""
_CLAIM = """
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
"""


class ActiveTenants:
    """The part of `gateway.serving.ports.Ledger` that is about all tenants; raises as it does."""

    def __init__(self, redis: RedisClient) -> None:
        self._redis = redis
        self._read_page = redis.register_script(_READ_PAGE)
        self._take_out = redis.register_script(_TAKE_OUT)
        self._claim = redis.register_script(_CLAIM)

    async def mark_active(self, tenant_ids: Sequence[str], *, now_ms: int) -> None:
        """Remember that these tenants may hold leases, so that any gateway can reap them."""
        await answer(self._redis.zadd(ACTIVE_KEY, dict.fromkeys(tenant_ids, now_ms)))

    async def active_tenants(self, at_most: int) -> list[str]:
        """Tenants that may hold something, the most recently active first."""
        names = await answer(self._redis.zrevrange(ACTIVE_KEY, 0, at_most - 1))
        return [name.decode() for name in cast("list[bytes]", names)]

    async def active_page(self, cursor: int) -> tuple[int, list[str]]:
        """Some of them from `cursor` on, 0 at first, and the next cursor, 0 at the end. Who is
        there all the time is seen, perhaps twice."""
        reply = await answer(self._read_page([ACTIVE_KEY], [cursor, PAGE]))
        found, pairs = cast("tuple[bytes, list[bytes]]", reply)
        return int(found), [name.decode() for name in pairs[::2]]

    async def take_out(self, tenant_ids: Sequence[str], *, before_ms: int) -> None:
        """These hold nothing; who was marked since `before_ms` stays."""
        if tenant_ids:
            await answer(self._take_out([ACTIVE_KEY], [before_ms, *tenant_ids]))

    async def claim_sweep(self, holder: str, *, for_ms: int) -> bool:
        """Take or keep the turn to sweep for so long; False where another has it."""
        return bool(await answer(self._claim([SWEEP_KEY], [holder, for_ms])))


async def answer(call: Awaitable[object]) -> object:
    """The reply. Raises LedgerUnavailable."""
    try:
        return await call
    except (RedisError, OSError, TimeoutError) as error:
        raise LedgerUnavailable(type(error)) from error
