"""Requests that have ended, newest first, in pages of a bounded cost.

A page is read along one index, from its place downwards: the tenant's where one is named, else that
of time. What the rest of the filter leaves out is read all the same, so a page looks at a bounded
number of records and may end short of its length: then it says how far it has looked, and the next
page goes on from there. So no filter is slow, however rare what it asks for.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import Select, func, select, true
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.postgres.tables import usage_record
from billing.postgres.usage_records import UsageFilter, UsageRow, conditions_of

LOOKED_AT_MAX = 10_000
"""Records that one page looks at."""
_COLUMNS = usage_record.c
_NAMES = [field.encode_name for field in msgspec.structs.fields(UsageRow)]


class RequestFilter(UsageFilter, frozen=True, kw_only=True):
    """Which requests; None is any. Those that arrived at or after `since` and before `until`."""

    api_key_id: str | None = None
    model: str | None = None
    request_class: str | None = None
    outcome: str | None = None


class RequestPage(msgspec.Struct, frozen=True):
    """Some requests, newest first. `next_cursor` asks for those after them, None at the end;
    `looked_through` is the arrival of the last one that was looked at, None where all were."""

    records: tuple[UsageRow, ...]
    next_cursor: str | None
    looked_through: datetime | None


async def list_requests(
    db: AsyncConnection, chosen: RequestFilter, *, limit: int, cursor: str | None = None
) -> RequestPage:
    """One page; requests that are recorded later never shift it. Raises InvalidCursor."""
    rest = _rest(chosen)
    query = (
        select(*(_COLUMNS[name] for name in _NAMES))
        .where(*conditions_of(chosen, cursor))
        .order_by(_COLUMNS.admitted_at.desc(), _COLUMNS.request_id.desc())
    )
    if rest:
        return await _sifted(db, query, rest, limit)
    rows = await db.execute(query.limit(limit + 1))
    return _page([dict(zip(_NAMES, row, strict=True)) for row in rows], limit, rest=None)


async def _sifted(
    db: AsyncConnection, query: Select[Any], rest: Mapping[str, str], limit: int
) -> RequestPage:
    """What `rest` leaves of the next LOOKED_AT_MAX that `query` finds."""
    looked_at = query.limit(LOOKED_AT_MAX).cte("looked_at")
    order = looked_at.c.admitted_at, looked_at.c.request_id
    found = (
        select(looked_at)
        .where(*(looked_at.c[name] == value for name, value in rest.items()))
        .order_by(*(column.desc() for column in order))
        .limit(limit + 1)
        .subquery("found")
    )
    # One statement and so one view of the table: what is recorded meanwhile is in no page twice.
    last = select(*order, select(func.count()).select_from(looked_at).scalar_subquery())
    last = last.order_by(*order).limit(1)
    end = last.subquery("last")
    both = end.outerjoin(found, true())
    rows = (await db.execute(select(*end.c, *found.c).select_from(both))).all()
    if not rows:
        return RequestPage((), None, None)
    width = len(end.c)
    last_at, last_id, count = rows[0][:width]
    told = [dict(zip(_NAMES, row[width:], strict=True)) for row in rows if row[width] is not None]
    is_full = count == LOOKED_AT_MAX
    return _page(told, limit, rest=(last_id, last_at) if is_full else None)


def _page(
    rows: Sequence[Mapping[str, Any]], limit: int, *, rest: tuple[UUID, datetime] | None
) -> RequestPage:
    """`rest` is the last record that was looked at, where there may be more behind it."""
    records = msgspec.convert(rows[:limit], tuple[UsageRow, ...])
    if len(rows) > limit:
        last = records[-1]
        return RequestPage(records, str(last.request_id), last.admitted_at)
    if rest is None:
        return RequestPage(records, None, None)
    return RequestPage(records, str(rest[0]), rest[1])


def _rest(chosen: RequestFilter) -> dict[str, str]:
    """What no index knows, only the records do."""
    rest = {
        "api_key_id": chosen.api_key_id,
        "model": chosen.model,
        "class": chosen.request_class,
        "outcome": chosen.outcome,
    }
    return {name: value for name, value in rest.items() if value is not None}
