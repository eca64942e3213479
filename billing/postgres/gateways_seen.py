"""How far each gateway's journal was known to be on its disk, kept where it outlives Redis."""

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from sqlalchemy import and_, delete, exists, func, or_, select, update
from sqlalchemy.dialects.postgresql import distinct_on, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.postgres.prices import instant_of, unix_ms_of
from billing.postgres.tables import gateway_seen, journal_watermark

WHOLE_KEPT = timedelta(days=1)
"""Of whom nothing more is expected and nothing was lost is forgotten after that."""
LOST_KEPT = timedelta(days=90)
"""Where numbers never came, what was last known of them is kept for so long."""
_columns = gateway_seen.c


class Seen(NamedTuple):
    """A boot of a gateway's journal as it last told of it, at `seen_at_ms` of the store's time."""

    gateway_id: str
    boot: int
    durable_seq: int
    shipped_seq: int
    open_count: int
    seen_at_ms: int


async def note_seen(connection: AsyncConnection, seen: Sequence[Seen]) -> None:
    """Keep them, within the caller's transaction, where they are newer than what is known. A
    gateway that is seen again is expected again."""
    if not seen:
        return
    rows = [
        {**each._asdict(), "seen_at": instant_of(each.seen_at_ms)}
        for each in sorted(seen)  # always in this order: no two writers wait for each other
    ]
    for row in rows:
        del row["seen_at_ms"]
    new = insert(gateway_seen)
    await connection.execute(
        new.on_conflict_do_update(
            index_elements=[_columns.gateway_id, _columns.boot],
            set_={
                "durable_seq": func.greatest(_columns.durable_seq, new.excluded.durable_seq),
                "shipped_seq": func.greatest(_columns.shipped_seq, new.excluded.shipped_seq),
                "open_count": new.excluded.open_count,
                "seen_at": new.excluded.seen_at,
                "recorded_at": func.now(),
                "closed_at": None,
            },
            where=new.excluded.seen_at > _columns.seen_at,
        ),
        rows,
    )


async def expect_again(connection: AsyncConnection, seen: Sequence[Seen]) -> int:
    """Expect these, within the caller's transaction, where Postgres has forgotten how far they
    were: it was restored from a backup. Returns of how many that was not known; again it is 0."""
    noted = 0
    for each in sorted(seen):
        values = {**each._asdict(), "seen_at": instant_of(each.seen_at_ms)}
        del values["seen_at_ms"]
        new = insert(gateway_seen).values(values)
        done = await connection.execute(
            new.on_conflict_do_update(
                index_elements=[_columns.gateway_id, _columns.boot],
                set_={
                    "durable_seq": new.excluded.durable_seq,
                    "seen_at": func.greatest(_columns.seen_at, new.excluded.seen_at),
                    "recorded_at": func.now(),
                    "closed_at": None,
                },
                where=new.excluded.durable_seq > _columns.durable_seq,
            )
        )
        noted += done.rowcount
    return noted


async def load_expected(connection: AsyncConnection) -> list[Seen]:
    """The newest boot of every gateway of which something is expected, in order."""
    named = (_columns.boot, _columns.durable_seq, _columns.shipped_seq, _columns.open_count)
    rows = await connection.execute(
        select(_columns.gateway_id, *named, _columns.seen_at)
        .where(_columns.closed_at.is_(None))
        .ext(distinct_on(_columns.gateway_id))
        .order_by(_columns.gateway_id, _columns.boot.desc())
    )
    return [Seen(row[0], *row[1:5], unix_ms_of(row[5])) for row in rows]


async def close_gateway(connection: AsyncConnection, gateway_id: str) -> None:
    """Nothing more is expected of a gateway, until it is seen again."""
    await connection.execute(
        update(gateway_seen)
        .where(_columns.gateway_id == gateway_id, _columns.closed_at.is_(None))
        .values(closed_at=func.now())
    )


async def forget_seen(connection: AsyncConnection) -> int:
    """Remove what nobody needs any longer: boots that are over and whose journal is in Postgres, at
    once where a later boot was seen; those of which something was lost, after LOST_KEPT. What is
    expected stays, whatever its age. Returns how many."""
    mark, later = journal_watermark.c, gateway_seen.alias().c
    shipped = (
        select(mark.seq)
        .where(mark.gateway_id == _columns.gateway_id, mark.boot == _columns.boot)
        .scalar_subquery()
    )
    is_whole = _columns.durable_seq <= func.coalesce(shipped, 0)
    is_followed = exists().where(
        later.gateway_id == _columns.gateway_id, later.boot > _columns.boot
    )
    is_closed = _columns.closed_at.is_not(None)
    removed = await connection.execute(
        delete(gateway_seen).where(
            or_(
                and_(is_whole, or_(is_followed, _columns.closed_at <= func.now() - WHOLE_KEPT)),
                and_(or_(is_followed, is_closed), _columns.recorded_at <= func.now() - LOST_KEPT),
            )
        )
    )
    return removed.rowcount
