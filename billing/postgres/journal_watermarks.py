"""How far each gateway's journal is in Postgres."""

from datetime import timedelta
from typing import NamedTuple

from sqlalchemy import func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.postgres.tables import journal_watermark


class Watermark(NamedTuple):
    """One boot's records up to `seq` are in Postgres: admissions, ends (dead letters among them),
    and numbers that the disk had lost."""

    seq: int = 0
    admitted_count: int = 0
    ended_count: int = 0
    missing_count: int = 0


async def load_watermarks(connection: AsyncConnection, gateway_id: str) -> dict[int, Watermark]:
    """Each boot's watermark."""
    columns = journal_watermark.c
    rows = await connection.execute(
        select(
            columns.boot,
            columns.seq,
            columns.admitted_count,
            columns.ended_count,
            columns.missing_count,
        ).where(columns.gateway_id == gateway_id)
    )
    return {row[0]: Watermark(*row[1:]) for row in rows}


class ShippedBoot(NamedTuple):
    """How far a boot of a gateway's journal is in Postgres."""

    gateway_id: str
    boot: int
    seq: int
    is_recent: bool
    """Whether it came that far within the time that was asked for."""


async def load_shipped(connection: AsyncConnection, *, recent: timedelta) -> list[ShippedBoot]:
    """Every boot of every journal that Postgres knows."""
    columns = journal_watermark.c
    rows = await connection.execute(
        select(
            columns.gateway_id,
            columns.boot,
            columns.seq,
            columns.updated_at > func.now() - recent,
        )
    )
    return [ShippedBoot(*row) for row in rows]


async def advance_watermark(
    connection: AsyncConnection, gateway_id: str, boot: int, *, before: Watermark, after: Watermark
) -> bool:
    """Move a boot's watermark within the caller's transaction.

    False, and nothing changed, where it does not stand at `before`: an earlier commit went through
    unnoticed, or Postgres was restored to an older state. The caller reads it again.
    """
    columns = journal_watermark.c
    if before == Watermark():
        known = await connection.scalar(
            select(columns.seq).where(columns.gateway_id == gateway_id, columns.boot == boot)
        )
        if known is not None:
            return False
        await connection.execute(
            insert(journal_watermark).values(gateway_id=gateway_id, boot=boot, **after._asdict())
        )
        return True
    result = await connection.execute(
        update(journal_watermark)
        .where(columns.gateway_id == gateway_id, columns.boot == boot, columns.seq == before.seq)
        .values(**after._asdict(), updated_at=func.now())
    )
    return result.rowcount == 1
