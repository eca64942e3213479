"""Which numbers of a journal its disk has lost: what a watermark only counts, told one by one."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.postgres.tables import journal_gap

DAMAGED = "damaged"
"""Their records are in no file, or in a stretch that was put aside."""


class Gap(NamedTuple):
    """Numbers of one boot, both ends included."""

    first_seq: int
    last_seq: int


async def note_gaps(
    connection: AsyncConnection, gateway_id: str, boot: int, gaps: Sequence[Gap]
) -> None:
    """Keep them, within the caller's transaction; one that begins where a known one does is passed
    over."""
    if gaps:
        await connection.execute(
            insert(journal_gap).on_conflict_do_nothing(),
            [
                {"gateway_id": gateway_id, "boot": boot, "reason": DAMAGED, **gap._asdict()}
                for gap in gaps
            ],
        )


async def load_gaps(connection: AsyncConnection, gateway_id: str) -> dict[int, list[Gap]]:
    """Each boot's, in order."""
    columns = journal_gap.c
    rows = await connection.execute(
        select(columns.boot, columns.first_seq, columns.last_seq)
        .where(columns.gateway_id == gateway_id)
        .order_by(columns.boot, columns.first_seq)
    )
    found: dict[int, list[Gap]] = {}
    for boot, first_seq, last_seq in rows:
        found.setdefault(boot, []).append(Gap(first_seq, last_seq))
    return found
