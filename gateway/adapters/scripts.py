"""Scripts of the store that tell gateways of each other, and a call that never waits long."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any, Protocol

from redis.exceptions import RedisError

from gateway.serving.ports import LedgerUnavailable

CALL_TIMEOUT_S = 0.25


class Script(Protocol):
    """A script of the store, called with its keys and arguments."""

    def __call__(
        self, keys: Sequence[str], args: Sequence[str | int | bytes]
    ) -> Awaitable[Any]: ...


class Store(Protocol):
    """What is asked of a Redis client, of one server or of a cluster: scripts on one key."""

    def register_script(self, source: str) -> Script: ...


async def called(
    script: Script, keys: Sequence[str], arguments: Sequence[str | int | bytes] = ()
) -> Any:
    """What the script answers. Raises LedgerUnavailable, after CALL_TIMEOUT_S at the latest."""
    try:
        async with asyncio.timeout(CALL_TIMEOUT_S):
            return await script(keys, arguments)
    except (RedisError, OSError, TimeoutError) as error:
        raise LedgerUnavailable(type(error)) from error
