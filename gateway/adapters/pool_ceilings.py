"""What is learned of workers, in Redis: one record a worker, in its pool's hash slot.

Holds no rule of its own: that is `gateway.domain.queue.learned.Record.met`, executed by
`lua_queue/ceilings.lua`.
"""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, fields
from importlib.resources import files
from struct import Struct
from typing import Any, cast

from redis.exceptions import RedisError

from gateway.adapters.pool_queue_records import name
from gateway.adapters.pool_queue_scripts import KEYS, keys_of
from gateway.adapters.redis import RedisClient
from gateway.domain.queue.capacity import FORGOTTEN_MS
from gateway.domain.queue.learned import Learned, Record
from gateway.domain.queue.samples import Samples
from gateway.serving.ports import LedgerUnavailable
from gateway.serving.queue_ceilings_ports import Met

AT_ONCE = 32
"""Workers in one call."""
_LEARNED = len(fields(Learned))
_COUNTS = len(fields(Samples)) - 1
"""Behind the epoch, which is that of what is known."""
_BROUGHT = Struct(f"<{_LEARNED + 1 + _COUNTS}d")
_RECORD = Struct(f"<{_LEARNED + _COUNTS}d")
_CONSTANTS = {
    "LEARNED_FIELDS": str(_LEARNED),
    "RECORD_FIELDS": str(_LEARNED + _COUNTS),
    "RECORD_BYTES": str(_RECORD.size),
    "RECORD_FORMAT": f"'<{'d' * (_LEARNED + _COUNTS)}'",
    "BROUGHT_FORMAT": f"'<{'d' * (_LEARNED + 1 + _COUNTS)}'",
}
_FLAGS = [at for at, field in enumerate(fields(Learned)) if field.type is bool]


class RedisPoolCeilings:
    """Implements `gateway.serving.queue_ceilings_ports.PoolCeilings`.

    Raises LedgerUnavailable where Redis cannot be reached, refuses, or takes longer than
    `timeout_ms`. `clock_ms` replaces the server's time in tests.
    """

    def __init__(
        self,
        redis: RedisClient,
        *,
        timeout_ms: int,
        clock_ms: Callable[[], int] | None = None,
        forgotten_ms: int = FORGOTTEN_MS,
    ) -> None:
        self._script = redis.register_script(ceilings_source())
        self._timeout_s = timeout_ms / 1000
        self._clock_ms = clock_ms
        self._forgotten_ms = forgotten_ms

    async def meet(self, pool: str, brought: Mapping[str, Record]) -> Met:
        """See `PoolCeilings`. More than `AT_ONCE` workers are several calls."""
        now_ms, workers = 0, list(brought)
        records: dict[str, Record] = {}
        taken: set[str] = set()
        for first in range(0, len(workers), AT_ONCE):
            asked = workers[first : first + AT_ONCE]
            now_ms, *reply = await self._run(pool, {each: brought[each] for each in asked})
            for worker, packed, is_taken in zip(asked, reply[::2], reply[1::2], strict=True):
                records[worker] = unpacked(cast("bytes", packed))
                if is_taken:
                    taken.add(worker)
        return Met(now_ms, records, frozenset(taken))

    async def _run(
        self, pool: str, brought: Mapping[str, Record]
    ) -> tuple[int, *tuple[object, ...]]:
        keys = [record_key(pool, worker) for worker in brought]
        now = "" if self._clock_ms is None else self._clock_ms()
        arguments = [now, self._forgotten_ms, *map(packed, brought.values())]
        try:
            async with asyncio.timeout(self._timeout_s):
                reply = await self._script(keys, arguments)
        except (RedisError, OSError, TimeoutError) as error:
            raise LedgerUnavailable(type(error)) from error
        return cast("tuple[int, *tuple[object, ...]]", tuple(cast("Sequence[object]", reply)))


def record_key(pool: str, worker: str) -> str:
    """Where a worker's record is: beside its pool's queue."""
    return f"{keys_of(name(pool))[0].removesuffix(KEYS[0])}learned:{name(worker)}"


def packed(brought: Record) -> bytes:
    """As the script reads what a gateway brings."""
    return _BROUGHT.pack(*astuple(brought.learned), *astuple(brought.samples))


def unpacked(kept: bytes) -> Record:
    """A record as it is kept."""
    values: list[Any] = [int(each) for each in _RECORD.unpack(kept)]
    for at in _FLAGS:
        values[at] = bool(values[at])
    learned = Learned(*values[:_LEARNED])
    return Record(learned, Samples(learned.epoch, *values[_LEARNED:]))


def ceilings_source() -> str:
    """The script, with the lengths of what the specification keeps."""
    source = (files("gateway.adapters") / "lua_queue" / "ceilings.lua").read_text()
    names = re.compile("|".join(rf"\b{each}\b" for each in _CONSTANTS))
    return names.sub(lambda found: _CONSTANTS[found[0]], source)
