"""Gateways of whose journals Postgres knows that it lacks something."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from sqlalchemy import and_, func, or_, select
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.postgres.tables import gateway_seen, journal_watermark

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_MARK = journal_watermark.c


class JournalBehind(NamedTuple):
    """A gateway of which more was durable, or open, than Postgres has; last seen at `seen_ms`."""

    gateway_id: str
    seen_ms: int


async def load_behind(connection: AsyncConnection) -> list[JournalBehind]:
    """By gateway. One of which nothing more is expected is not among them; one that lives may be,
    since it always ships a moment later. A boot is shipped after those before it: the newest one
    speaks for all."""
    newest = (
        select(gateway_seen)
        .where(gateway_seen.c.closed_at.is_(None))
        .ext(distinct_on(gateway_seen.c.gateway_id))
        .order_by(gateway_seen.c.gateway_id, gateway_seen.c.boot.desc())
        .subquery()
    )
    seen = newest.c
    mark = and_(_MARK.gateway_id == seen.gateway_id, _MARK.boot == seen.boot)
    rows = await connection.execute(
        select(seen.gateway_id, seen.seen_at)
        .select_from(newest.outerjoin(journal_watermark, mark))
        .where(or_(seen.durable_seq > func.coalesce(_MARK.seq, 0), seen.open_count > 0))
        .order_by(seen.gateway_id)
    )
    return [JournalBehind(name, (at - _EPOCH) // _MILLISECOND) for name, at in rows]
