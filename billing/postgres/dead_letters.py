"""Records that Postgres refuses: kept whole, for a person to resolve, never dropped."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.postgres.tables import usage_dead_letter


class DeadLetter(NamedTuple):
    """One refused record. `source` names its place in the gateway's journal; `reason` is a code,
    such as a constraint's name, never content."""

    gateway_id: str
    source: str
    request_id: UUID | None
    reason: str
    payload: bytes


async def bury(connection: AsyncConnection, letters: Sequence[DeadLetter]) -> None:
    """Keep them, within the caller's transaction; one that is kept already is passed over."""
    if letters:
        await connection.execute(
            insert(usage_dead_letter).on_conflict_do_nothing(),
            [letter._asdict() for letter in letters],
        )


async def count_open(connection: AsyncConnection) -> int:
    """How many wait to be resolved."""
    counted = await connection.scalar(
        select(func.count())
        .select_from(usage_dead_letter)
        .where(usage_dead_letter.c.resolved_at.is_(None))
    )
    return counted or 0
