"""Gateways of whose journals Postgres knows that it lacks something."""

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, and_, exists, func, or_, select, update
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.postgres.tables import gateway_seen, journal_watermark

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_SEEN = gateway_seen.c
_MARK = journal_watermark.c


class JournalBehind(NamedTuple):
    """A gateway of which more was durable, or open, than Postgres has; last seen at `seen_ms`."""

    gateway_id: str
    seen_ms: int


async def load_behind(connection: AsyncConnection) -> list[JournalBehind]:
    """By gateway. One of which nothing more is expected is not among them; one that lives may be,
    since it always ships a moment later. A boot is shipped after those before it: the newest one
    speaks for all."""
    rows = await connection.execute(_behind().order_by("gateway_id"))
    return [JournalBehind(name, (at - _EPOCH) // _MILLISECOND) for name, at in rows]


async def close_if_shipped(connection: AsyncConnection, gateway_id: str) -> bool:
    """Nothing more is expected of a gateway, until it is seen again; nothing is changed where
    Postgres lacks something of its journal. Returns whether it does not."""
    behind = _behind(gateway_id).subquery()
    of_it = and_(_SEEN.gateway_id == gateway_id, _SEEN.closed_at.is_(None))
    await connection.execute(
        update(gateway_seen)
        .where(of_it, ~exists(select(behind.c.gateway_id)))
        .values(closed_at=func.now())
    )
    return not await connection.scalar(select(exists().where(of_it)))


def _behind(gateway_id: str | None = None) -> Select[Any]:
    """Of all that are expected, or one."""
    expected: list[ColumnElement[bool]] = [_SEEN.closed_at.is_(None)]
    if gateway_id is not None:
        expected.append(_SEEN.gateway_id == gateway_id)
    newest = (
        select(gateway_seen)
        .where(*expected)
        .ext(distinct_on(_SEEN.gateway_id))
        .order_by(_SEEN.gateway_id, _SEEN.boot.desc())
        .subquery()
    )
    seen = newest.c
    mark = and_(_MARK.gateway_id == seen.gateway_id, _MARK.boot == seen.boot)
    shipped = func.coalesce(_MARK.seq, 0)
    every, later = journal_watermark.alias().c, journal_watermark.alias().c
    still_open = (
        select(func.coalesce(func.sum(every.admitted_count - every.ended_count), 0))
        .where(every.gateway_id == seen.gateway_id)
        .scalar_subquery()
    )
    ended_by_a_later_boot = exists().where(
        later.gateway_id == seen.gateway_id, later.boot > seen.boot
    )
    # How many were open when it was seen is out of date where more was shipped since.
    was_open = or_(shipped > seen.durable_seq, seen.open_count > 0)
    return (
        select(seen.gateway_id, seen.seen_at)
        .select_from(newest.outerjoin(journal_watermark, mark))
        .where(
            or_(
                seen.durable_seq > shipped,
                and_(was_open, still_open > 0, ~ended_by_a_later_boot),
            )
        )
    )
