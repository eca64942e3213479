"""Rows of usage beside the records that journals say they are."""

from collections.abc import Sequence

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.reconciliation.replay import Altered
from billing.postgres.rate_later import RATED_LATER
from billing.postgres.usage_insert import RECORD_COLUMNS, Column, JournaledRecord

_PLACE = ("boot", "seq")
_COMPARED = tuple(column for column in RECORD_COLUMNS if column.name != "request_id")
_NAMES = [column.name for column in _COMPARED]
_FLAGS = _NAMES.index("usage_flags")
_PRICE = _NAMES.index("price_id")
_MONEY = tuple(_NAMES.index(name) for name in ("price_id", "cost_pico", "list_cost_pico"))


def _stored(column: Column[JournaledRecord]) -> str:
    """A column of a row as text, an instant as its Unix milliseconds."""
    if column.sent_as == "_ms":
        return f'(extract(epoch FROM row."{column.name}") * 1000)::bigint::text'
    if column.sent_as == "_words":
        return f"array_to_string(row.\"{column.name}\", ' ')"
    return f'row."{column.name}"::text'


# A row that came by another way than this account of its journal stays what it is: the account is
# kept as one that came late.
_ROWS = text(
    f"SELECT row.request_id, {', '.join(map(_stored, _COMPARED))}"  # noqa: S608 - names of columns
    " FROM unnest(CAST(:ids AS uuid[]), CAST(:times AS bigint[])) AS sent (request_id, at_ms)"
    " JOIN usage_record AS row"
    " ON row.request_id = sent.request_id AND row.admitted_at = unix_ms_time(sent.at_ms)"
    " WHERE row.final AND NOT EXISTS ("
    "SELECT 1 FROM usage_late AS late WHERE late.request_id = row.request_id"
    " AND late.admitted_at = row.admitted_at)"
)


async def find_altered(
    connection: AsyncConnection, rows: Sequence[JournaledRecord]
) -> list[Altered]:
    """Every column of a final row that is not what its journal says. Of a row that names no place
    in a journal the place is not compared; a row that is missing is not found here."""
    sent = {row.record.request_id: row for row in rows}
    chosen = {
        "ids": list(sent),
        "times": [row.record.admitted_at_ms for row in sent.values()],
    }
    found = []
    for request_id, *stored in await connection.execute(_ROWS, chosen):
        told = [_told(column, sent[request_id]) for column in _COMPARED]
        values = _as_shipped(stored, told)
        if told != values:
            found += _altered(sent[request_id], values, told)
    return found


def _as_shipped(stored: Sequence[str | None], told: Sequence[str | None]) -> Sequence[str | None]:
    """The row as it was before it was rated later: its journal knows of no price, and says nothing
    of the one that it has."""
    flags = (stored[_FLAGS] or "").split()
    if RATED_LATER not in flags or told[_PRICE] is not None:
        return stored
    before = list(stored)
    before[_FLAGS] = " ".join(flag for flag in flags if flag != RATED_LATER)
    for at in _MONEY:
        before[at] = told[at]
    return before


def _told(column: Column[JournaledRecord], row: JournaledRecord) -> str | None:
    value = column.read(row)
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def _altered(
    row: JournaledRecord, stored: Sequence[str | None], told: Sequence[str | None]
) -> list[Altered]:
    has_place = stored[_NAMES.index("boot")] is not None
    return [
        Altered(row.record.request_id, row.gateway_id, name, is_stored, is_told)
        for name, is_stored, is_told in zip(_NAMES, stored, told, strict=True)
        if is_stored != is_told and (has_place or name not in _PLACE)
    ]
