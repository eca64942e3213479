"""Rows of usage and of their attempts beside the records that journals say they are."""

from collections.abc import Collection, Iterator, Sequence
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.reconciliation.replay import Altered
from billing.postgres.rate_later import RATED_LATER
from billing.postgres.usage_insert import (
    ATTEMPT_COLUMNS,
    RECORD_COLUMNS,
    Column,
    JournaledRecord,
    Row,
    attempts_of,
)

_PLACE = ("boot", "seq")
_COMPARED = tuple(column for column in RECORD_COLUMNS if column.name != "request_id")
_NAMES = [column.name for column in _COMPARED]
_FLAGS = _NAMES.index("usage_flags")
_PRICE = _NAMES.index("price_id")
_CURRENCY = _NAMES.index("currency")
_MONEY = tuple(_NAMES.index(name) for name in ("price_id", "cost_pico", "list_cost_pico"))
_KEY = ("request_id", "admitted_at", "choice", "attempt")
_OF_ATTEMPT = tuple(column for column in ATTEMPT_COLUMNS if column.name not in _KEY)
_HOW = next(column for column in _OF_ATTEMPT if column.name == "outcome")


def _stored(column: Column[Row]) -> str:
    """A column of a row as text, an instant as its Unix milliseconds and what it has beyond."""
    if column.sent_as == "_ms":
        return f'trim_scale(extract(epoch FROM row."{column.name}") * 1000)::text'
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
_TRIED = text(
    "SELECT row.request_id, row.choice, row.attempt,"  # noqa: S608 - names of columns
    f" {', '.join(map(_stored, _OF_ATTEMPT))}"
    " FROM unnest(CAST(:ids AS uuid[]), CAST(:times AS bigint[])) AS sent (request_id, at_ms)"
    " JOIN usage_attempt AS row"
    " ON row.request_id = sent.request_id AND row.admitted_at = unix_ms_time(sent.at_ms)"
    " ORDER BY row.request_id, row.choice, row.attempt"
)
_Tried = dict[tuple[UUID, int, int], Sequence[str | None]]


async def find_altered(
    connection: AsyncConnection, rows: Sequence[JournaledRecord]
) -> list[Altered]:
    """Every column of a final row, and of its attempts, that is not what its journal says. Of a row
    that names no place in a journal the place is not compared; a row that is missing is not found
    here."""
    sent = {row.record.request_id: row for row in rows}
    chosen = {
        "ids": list(sent),
        "times": [row.record.admitted_at_ms for row in sent.values()],
    }
    found: list[Altered] = []
    final: set[UUID] = set()
    for request_id, *stored in await connection.execute(_ROWS, chosen):
        final.add(request_id)
        told = [_told(column, sent[request_id]) for column in _COMPARED]
        values = _as_shipped(stored, told)
        if told != values:
            found += _altered(sent[request_id], values, told)
    stored_tries: _Tried = {
        (request_id, choice, attempt): values
        for request_id, choice, attempt, *values in await connection.execute(_TRIED, chosen)
        if request_id in final
    }
    return [*found, *_altered_tries(sent.values(), final, stored_tries)]


def _altered_tries(
    rows: Collection[JournaledRecord], final: Collection[UUID], stored: _Tried
) -> Iterator[Altered]:
    """One that is on one side alone is told by how it ended."""
    told: _Tried = {
        (each.record.request_id, each.attempt.choice, each.attempt.attempt): [
            _told(column, each) for column in _OF_ATTEMPT
        ]
        for each in attempts_of(list(rows), final)
    }
    gateways = {row.record.request_id: row.gateway_id for row in rows}
    nothing = [None] * len(_OF_ATTEMPT)
    for key in sorted(stored.keys() | told.keys()):
        request_id, choice, attempt = key
        names = _OF_ATTEMPT if key in stored and key in told else (_HOW,)
        values = stored.get(key, nothing), told.get(key, nothing)
        for column in names:
            at = _OF_ATTEMPT.index(column)
            is_stored, is_told = values[0][at], values[1][at]
            if is_stored != is_told:
                yield Altered(
                    request_id,
                    gateways[request_id],
                    column.name,
                    is_stored,
                    is_told,
                    of=f"attempt {attempt} of choice {choice}",
                )


def _as_shipped(stored: Sequence[str | None], told: Sequence[str | None]) -> Sequence[str | None]:
    """The row as it was before it was rated later: its journal knows of no price, and says nothing
    of the one that it has, nor of a currency that came with it."""
    flags = (stored[_FLAGS] or "").split()
    if RATED_LATER not in flags or told[_PRICE] is not None:
        return stored
    before = list(stored)
    before[_FLAGS] = " ".join(flag for flag in flags if flag != RATED_LATER)
    for at in _MONEY:
        before[at] = told[at]
    if told[_CURRENCY] is None:
        before[_CURRENCY] = None
    return before


def _told(column: Column[Row], row: Row) -> str | None:
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
