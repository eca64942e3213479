"""Rows of usage beside the records that journals say they are."""

from collections.abc import Sequence

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.reconciliation.replay import Altered
from billing.postgres.usage_insert import RECORD_COLUMNS, Column, JournaledRecord

_PLACE = ("boot", "seq")
_COMPARED = tuple(column for column in RECORD_COLUMNS if column.name != "request_id")


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
    for request_id, *values in await connection.execute(_ROWS, chosen):
        told = [_told(column, sent[request_id]) for column in _COMPARED]
        if told != values:
            found += _altered(sent[request_id], values, told)
    return found


def _told(column: Column[JournaledRecord], row: JournaledRecord) -> str | None:
    value = column.read(row)
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def _altered(
    row: JournaledRecord, stored: Sequence[str | None], told: Sequence[str | None]
) -> list[Altered]:
    names = [column.name for column in _COMPARED]
    has_place = stored[names.index("boot")] is not None
    return [
        Altered(row.record.request_id, row.gateway_id, name, is_stored, is_told)
        for name, is_stored, is_told in zip(names, stored, told, strict=True)
        if is_stored != is_told and (has_place or name not in _PLACE)
    ]
