"""Prices and plans in the store, so that those are known that a restored Postgres has lost: what
was rated at them could not be invoiced.

One hash, `weir:{gateways}.prices`: a field `<table>:<id>` for each row, and `<table>` for the
newest id. A price is written once and never changed: nothing here is ever out of date.
"""

from collections.abc import Mapping, Sequence
from typing import cast

from sqlalchemy.ext.asyncio import AsyncConnection

from billing.postgres.lost_prices import TABLES, find_lost, load_written, use_no_id_again
from gateway.adapters.scripts import Store, called

PRICES_KEY = "weir:{gateways}.prices"
AT_ONCE = 200
_NEWEST = "return redis.call('HMGET', KEYS[1], unpack(ARGV))"
_ENTER = "return redis.call('HSET', KEYS[1], unpack(ARGV))"
_READ = "return redis.call('HGETALL', KEYS[1])"
_DROP = "return redis.call('HDEL', KEYS[1], unpack(ARGV))"


class PricePast:
    """What the store remembers. Its methods raise LedgerUnavailable."""

    def __init__(self, store: Store) -> None:
        self._script_newest = store.register_script(_NEWEST)
        self._script_enter = store.register_script(_ENTER)
        self._script_read = store.register_script(_READ)
        self._script_drop = store.register_script(_DROP)

    async def newest(self) -> dict[str, int]:
        """The highest id of each table; 0 where none is known."""
        names = list(TABLES)
        found = cast("list[bytes | None]", await called(self._script_newest, [PRICES_KEY], names))
        return {name: int(value or 0) for name, value in zip(names, found, strict=True)}

    async def enter(self, table: str, rows: Sequence[tuple[int, str]]) -> None:
        """These were written, in order."""
        for start in range(0, len(rows), AT_ONCE):
            some = rows[start : start + AT_ONCE]
            told: list[str | int] = [table, some[-1][0]]
            for number, row in some:
                told += [f"{table}:{number}", row]
            await called(self._script_enter, [PRICES_KEY], told)

    async def rows(self) -> dict[str, dict[int, str]]:
        """All that is remembered of each table, by id."""
        reply = cast("list[bytes]", await called(self._script_read, [PRICES_KEY]))
        found: dict[str, dict[int, str]] = {table: {} for table in TABLES}
        for name, value in zip(reply[::2], reply[1::2], strict=True):
            table, _, number = name.decode().partition(":")
            if number and table in found:
                found[table][int(number)] = value.decode()
        return found

    async def forget(self, lost: Mapping[str, Sequence[int]]) -> None:
        """Nobody wants these back. Their ids are given to no other row all the same."""
        names = [f"{table}:{number}" for table, numbers in lost.items() for number in numbers]
        for start in range(0, len(names), AT_ONCE):
            await called(self._script_drop, [PRICES_KEY], names[start : start + AT_ONCE])


async def use_no_number_again(connection: AsyncConnection, newest: Mapping[str, int]) -> None:
    """Have the next row of each table numbered above the newest that is remembered: a restored
    Postgres would give its id to another."""
    for table, known in newest.items():
        await use_no_id_again(connection, table, newest=known)


async def load_fresh(
    connection: AsyncConnection, newest: Mapping[str, int]
) -> dict[str, list[tuple[int, str]]]:
    """Rows of each table after the newest that is remembered. Where a restored Postgres would give
    a remembered id to another row, it is told not to."""
    await use_no_number_again(connection, newest)
    return {
        table: await load_written(connection, table, after_id=known)
        for table, known in newest.items()
    }


async def lost_rows(
    connection: AsyncConnection, remembered: Mapping[str, Mapping[int, str]]
) -> dict[str, list[int]]:
    """The ids of each table's rows that Postgres had and does not have as they were."""
    return {
        table: await find_lost(connection, table, [*rows.values()])
        for table, rows in remembered.items()
    }
