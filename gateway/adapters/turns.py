"""Whose turn it is to do what one gateway is enough for: a claim in Redis that lapses by itself."""

import asyncio
from typing import Any

from redis.exceptions import RedisError

from gateway.adapters.presence import Script, Store
from gateway.serving.ports import LedgerUnavailable

TURN_MS = 5_000
CALL_TIMEOUT_S = 0.25
_CLAIM = """
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
"""
_RELEASE = """
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
"""


class RedisTurns:
    """Implements `serving.month_ports.Turns`. Advice, no lock: whoever was slow may find that
    another has begun."""

    def __init__(self, store: Store) -> None:
        self._claim = store.register_script(_CLAIM)
        self._release = store.register_script(_RELEASE)

    async def claim(self, tenant_id: str, what: str, holder: str) -> bool:
        """Take or keep the turn for TURN_MS; False where another has it. Raises
        LedgerUnavailable."""
        return bool(await _called(self._claim, tenant_id, what, holder, TURN_MS))

    async def release(self, tenant_id: str, what: str, holder: str) -> None:
        """Give the turn back, where it is still the holder's. Raises LedgerUnavailable."""
        await _called(self._release, tenant_id, what, holder)


async def _called(script: Script, tenant_id: str, what: str, *arguments: str | int) -> Any:
    try:
        async with asyncio.timeout(CALL_TIMEOUT_S):
            return await script([f"weir:{{{tenant_id}}}:turn:{what}"], arguments)
    except (RedisError, OSError, TimeoutError) as error:
        raise LedgerUnavailable(type(error)) from error
