"""Since when the store remembers, so that one that comes back empty is never taken for a new one.

A mark in the store itself says it: `weir:born` on a single server, and in a cluster one for each
hash slot, `weir:born:{tag}`, beside the tenants whose keys lie in that slot. (One for several slots
would not do: the slots of one shard end where they end, and a mark on the next shard would survive
what its tenants lost.) Its value is Unix ms by the server's own clock, or 0: nothing was ever lost.

A mark that is missing is written with the present time: whatever lay there is gone. Only the first
gateway of a new installation writes 0: no mark is there, and Postgres has never seen usage.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import ParamSpec, TypeVar

from redis.crc import key_slot
from redis.exceptions import RedisError
from sqlalchemy import exists, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from billing.postgres.tables import journal_watermark, usage_record
from gateway.adapters.redis import RedisClient, slot_tags
from gateway.adapters.redis_url import Kind
from gateway.serving.ports import LedgerUnavailable

NEVER_LOST = 0
KEEP_S = 5.0
"""Between looks at the marks, so that a loss is dated also where nobody asks."""
SAMPLE_STEP = 64
"""Of a cluster's slots every so many'th is looked at: shards are larger."""
_AT_ONCE = 64
_ATTEMPTS = 5
_OTHERS_S = 3.0
"""Another first gateway that wrote nothing for so long has gone."""
_OTHERS_POLL_S = 0.05
_FAILURES = (RedisError, SQLAlchemyError, OSError, TimeoutError)
Arguments = ParamSpec("Arguments")
Reply = TypeVar("Reply")
_log = logging.getLogger(__name__)

# KEYS 1 the mark; ARGV 1 what to write where it is missing, or empty for the present time.
# Reply: {its value, 1 where it was missing}
_READ_OR_WRITE = """\
local found = redis.call('GET', KEYS[1])
if found then
  return { found, 0 }
end
local value = ARGV[1]
if value == '' then
  local t = redis.call('TIME')
  value = string.format('%.0f', t[1] * 1000 + math.floor(t[2] / 1000))
end
redis.call('SET', KEYS[1], value)
return { value, 1 }
"""


class Births:
    """Reads the marks, and writes those that are missing.

    `has_history` says whether this installation ever served anything, so that a store without
    marks has lost them. What is asked of a store that cannot answer raises LedgerUnavailable.
    """

    def __init__(self, redis: RedisClient, has_history: Callable[[], Awaitable[bool]]) -> None:
        self._redis = redis
        self._has_history = has_history
        self._read_or_write = redis.register_script(_READ_OR_WRITE)
        self._opening = asyncio.Lock()
        self._opened = False

    async def open(self) -> None:
        """See to it that every mark is there, once; what comes later only has to read."""
        async with self._opening:
            if self._opened:
                return
            try:
                new = await self._is_new()
                # Known from here on: where the store has a past, a missing mark is a loss.
                self._opened = not new
                if new:
                    await self._ensure(self._marks(), NEVER_LOST)
                else:
                    await self._look()
            except _FAILURES as error:
                raise LedgerUnavailable(type(error)) from error
            self._opened = True

    async def born_ms(self, tenant_id: str) -> int:
        """The instant since which the store remembers this tenant, by the store's clock; 0 where
        it never lost anything. Asks the store each time."""
        if not self._opened:
            await self.open()
        try:
            value, fresh = await self._read_or_write([self._mark_of(tenant_id)], [""])
        except _FAILURES as error:
            raise LedgerUnavailable(type(error)) from error
        if fresh:
            _log.warning("Redis came back empty: the mark of its birth was gone")
        return int(value)

    async def run(self) -> None:
        """Look at the marks for ever, so that a loss is dated soon also where nobody asks."""
        while True:
            await asyncio.sleep(KEEP_S)
            try:
                await self.open()
                await self._look()
            except (LedgerUnavailable, *_FAILURES) as error:
                _log.debug("marks of birth not seen: %s", type(error).__name__)

    async def _look(self) -> None:
        """Write what is missing; of a cluster all of it only where a sample misses something."""
        if await self._ensure(self._marks(SAMPLE_STEP), None):
            await self._ensure(self._marks(), None)

    async def _is_new(self) -> bool:
        """Whether there is neither usage nor a mark. Where there are some marks and no usage,
        another first gateway is writing them: it is let finish, or its work would look like a loss.
        """
        if await self._has_history():
            return False
        seen, deadline = 0, time.monotonic() + _OTHERS_S
        sample = [*self._marks(SAMPLE_STEP), self._marks()[-1]]
        while True:
            found = [value is not None for value in await self._read(sample)]
            if not any(found):
                return True
            if sum(found) > seen:
                seen, deadline = sum(found), time.monotonic() + _OTHERS_S
            if all(found) or time.monotonic() > deadline:
                return False
            await asyncio.sleep(_OTHERS_POLL_S)

    async def _read(self, marks: Sequence[str]) -> list[bytes | None]:
        values: list[bytes | None] = []
        for names in _chunks(marks):
            values += await _patiently(self._redis.mget, names)
        return values

    async def _ensure(self, marks: Sequence[str], value: int | None) -> int:
        """Write those that are missing; how many were."""
        written = 0
        argument = "" if value is None else str(value)
        for names in _chunks(marks):
            written += await _patiently(self._write, names, argument)
        if written and value is None:
            _log.warning("Redis came back empty: %d of its marks of birth were gone", written)
        return written

    async def _write(self, names: Sequence[str], argument: str) -> int:
        replies = await asyncio.gather(*(self._read_or_write([name], [argument]) for name in names))
        return sum(fresh for _, fresh in replies)

    def _marks(self, step: int = 1) -> Sequence[str]:
        if self._redis.kind is not Kind.CLUSTER:
            return ["weir:born"]
        return [f"weir:born:{{{tag}}}" for tag in slot_tags()[::step]]

    def _mark_of(self, tenant_id: str) -> str:
        if self._redis.kind is not Kind.CLUSTER:
            return "weir:born"
        return f"weir:born:{{{slot_tags()[key_slot(f'{{{tenant_id}}}'.encode())]}}}"


def history_in(engine: AsyncEngine) -> Callable[[], Awaitable[bool]]:
    """Whether Postgres has ever seen usage, or any gateway's journal."""

    async def has_history() -> bool:
        async with engine.connect() as db:
            usage = exists(select(usage_record.c.request_id))
            journals = exists(select(journal_watermark.c.gateway_id))
            return bool(await db.scalar(select(usage | journals)))

    return has_history


async def _patiently(
    call: Callable[Arguments, Awaitable[Reply]], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Reply:
    """The reply of what may be repeated: of thousands of calls one may well be late."""
    for _ in range(_ATTEMPTS - 1):
        with contextlib.suppress(TimeoutError):
            return await call(*args, **kwargs)
    return await call(*args, **kwargs)


def _chunks(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), _AT_ONCE):
        yield names[start : start + _AT_ONCE]
