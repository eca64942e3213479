"""The highest numbers of invoices and credit notes in the store: a restored Postgres would give
those again that customers have already.

One hash, `weir:{gateways}.numbers`: a field for each series, such as `INV-2026-`.
"""

from collections.abc import Mapping
from typing import NamedTuple, cast

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.adapters.scripts import Store, called

NUMBERS_KEY = "weir:{gateways}.numbers"
_READ = "return redis.call('HGETALL', KEYS[1])"
_ENTER = "return redis.call('HSET', KEYS[1], unpack(ARGV))"
_FORGET = "return redis.call('DEL', KEYS[1])"
_HELD = text("SELECT series, last FROM invoice_number")


class LostNumbers(NamedTuple):
    """Documents of a series were numbered up to `had`; Postgres knows of `has`."""

    series: str
    had: int
    has: int


class NumberPast:
    """What the store remembers. Every method raises LedgerUnavailable."""

    def __init__(self, store: Store) -> None:
        self._script_read = store.register_script(_READ)
        self._script_enter = store.register_script(_ENTER)
        self._script_forget = store.register_script(_FORGET)

    async def read(self) -> dict[str, int]:
        """The highest number of each series."""
        reply = cast("list[bytes]", await called(self._script_read, [NUMBERS_KEY]))
        return {
            name.decode(): int(last) for name, last in zip(reply[::2], reply[1::2], strict=True)
        }

    async def enter(self, remembered: Mapping[str, int], held: Mapping[str, int]) -> None:
        """Postgres has these: what is higher than before is remembered."""
        told: list[str | int] = []
        for series, last in held.items():
            if last > remembered.get(series, 0):
                told += [series, last]
        if told:
            await called(self._script_enter, [NUMBERS_KEY], told)

    async def forget(self) -> None:
        """What is lost is known; what Postgres has is remembered anew."""
        await called(self._script_forget, [NUMBERS_KEY])


async def load_numbers(connection: AsyncConnection) -> dict[str, int]:
    """The last number of each series."""
    return {row[0]: row[1] for row in await connection.execute(_HELD)}


def lost_numbers(remembered: Mapping[str, int], held: Mapping[str, int]) -> list[LostNumbers]:
    """Series whose last numbers Postgres does not know of."""
    return [
        LostNumbers(series, had, held.get(series, 0))
        for series, had in sorted(remembered.items())
        if held.get(series, 0) < had
    ]
