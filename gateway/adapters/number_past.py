"""The highest numbers of invoices and credit notes in the store: a restored Postgres would give
those again that customers have already.

One hash, `weir:{gateways}.numbers`: a field for each series, such as `INV-2026-`. Beside it
`weir:{gateways}.numbered`, a field for each invoice's number with whose it is: the same may have it
again, and nobody else.
"""

from collections.abc import Mapping
from typing import NamedTuple, cast

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.invoicing.numbering import DIGITS
from billing.postgres.prices import unix_ms_of
from gateway.adapters.scripts import Store, called

NUMBERS_KEY = "weir:{gateways}.numbers"
NUMBERED_KEY = "weir:{gateways}.numbered"
AT_ONCE = 500
OWNERS_MAX = 10_000
"""Of a series, looked at in one go: a gateway looks every 5 s."""
_READ = "return redis.call('HGETALL', KEYS[1])"
_ENTER = "return redis.call('HSET', KEYS[1], unpack(ARGV))"
_FORGET = "return redis.call('DEL', KEYS[1], KEYS[2])"
_OWNERS = "return redis.call('HMGET', KEYS[1], unpack(ARGV))"
_HELD = text("SELECT series, last FROM invoice_number")
_NUMBERED = text(
    "SELECT number, tenant_id, period_end FROM invoice WHERE number = ANY(:numbers) ORDER BY number"
)


class LostNumbers(NamedTuple):
    """Documents of a series were numbered up to `had`; Postgres knows of `has`."""

    series: str
    had: int
    has: int

    @property
    def next(self) -> str:
        """The number that Postgres would give, and somebody has."""
        return f"{self.series}{self.has + 1:0{DIGITS}}"


class Owner(NamedTuple):
    """Whose invoice it is, and of which month, by its end (Unix ms)."""

    tenant_id: str
    end_ms: int


class NumberPast:
    """What the store remembers. Every method raises LedgerUnavailable."""

    def __init__(self, store: Store) -> None:
        self._script_read = store.register_script(_READ)
        self._script_enter = store.register_script(_ENTER)
        self._script_forget = store.register_script(_FORGET)
        self._script_owners = store.register_script(_OWNERS)

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

    async def enter_owners(self, owners: Mapping[str, Owner]) -> None:
        """Invoices with these numbers are theirs. To be entered before the numbers are."""
        names = list(owners)
        for start in range(0, len(names), AT_ONCE):
            told: list[str | int] = []
            for name in names[start : start + AT_ONCE]:
                told += [name, f"{owners[name].tenant_id}|{owners[name].end_ms}"]
            await called(self._script_enter, [NUMBERED_KEY], told)

    async def owner(self, number: str) -> Owner | None:
        """Whose invoice had that number; None where that is not known."""
        (found,) = cast(
            "list[bytes | None]", await called(self._script_owners, [NUMBERED_KEY], [number])
        )
        if found is None:
            return None
        tenant_id, _, end_ms = found.decode().partition("|")
        return Owner(tenant_id, int(end_ms))

    async def forget(self) -> None:
        """What is lost is known; what Postgres has is remembered anew."""
        await called(self._script_forget, [NUMBERS_KEY, NUMBERED_KEY])


async def load_numbers(connection: AsyncConnection) -> dict[str, int]:
    """The last number of each series."""
    return {row[0]: row[1] for row in await connection.execute(_HELD)}


async def load_owners(
    connection: AsyncConnection, remembered: Mapping[str, int], held: Mapping[str, int]
) -> dict[str, Owner]:
    """Whose the invoices are that were numbered since, the latest of each series."""
    numbers = [
        f"{series}{count:0{DIGITS}}"
        for series, last in held.items()
        for count in range(max(remembered.get(series, 0), last - OWNERS_MAX) + 1, last + 1)
    ]
    if not numbers:
        return {}
    rows = await connection.execute(_NUMBERED, {"numbers": numbers})
    return {row.number: Owner(row.tenant_id, unix_ms_of(row.period_end)) for row in rows}


def lost_numbers(remembered: Mapping[str, int], held: Mapping[str, int]) -> list[LostNumbers]:
    """Series whose last numbers Postgres does not know of."""
    return [
        LostNumbers(series, had, held.get(series, 0))
        for series, had in sorted(remembered.items())
        if held.get(series, 0) < had
    ]
