"""Records that Postgres refuses: kept whole, for a person to resolve, never dropped."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import msgspec
from sqlalchemy import func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.postgres.tables import usage_dead_letter

_columns = usage_dead_letter.c


class DeadLetter(NamedTuple):
    """One refused record. `source` names its place in the gateway's journal; `reason` is a code,
    such as a constraint's name, never content."""

    gateway_id: str
    source: str
    request_id: UUID | None
    reason: str
    payload: bytes


class KeptLetter(msgspec.Struct, frozen=True):
    """A dead letter as it lies in Postgres, without its payload. `retries` counts how often it was
    tried again and refused again."""

    id: int
    gateway_id: str
    source: str
    request_id: UUID | None
    reason: str
    retries: int
    created_at: datetime
    resolved_at: datetime | None


class OpenLetter(NamedTuple):
    """A dead letter to be tried again, locked for it."""

    id: int
    letter: DeadLetter


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
        select(func.count()).select_from(usage_dead_letter).where(_columns.resolved_at.is_(None))
    )
    return counted or 0


async def list_letters(
    connection: AsyncConnection, *, resolved: bool = False, limit: int, after_id: int = 0
) -> list[KeptLetter]:
    """The oldest first, those after `after_id`: the open ones or, with `resolved`, all."""
    chosen = select(*(_columns[name] for name in KeptLetter.__struct_fields__)).where(
        _columns.id > after_id
    )
    if not resolved:
        chosen = chosen.where(_columns.resolved_at.is_(None))
    rows = await connection.execute(chosen.order_by(_columns.id).limit(limit))
    return [KeptLetter(*row) for row in rows]


async def lock_open(
    connection: AsyncConnection, *, letter_id: int | None = None, after_id: int = 0, limit: int
) -> list[OpenLetter]:
    """Open letters, the oldest first, held until the caller's transaction ends: two that try them
    again at once take turns. `letter_id` names one; what is resolved already is not among them."""
    chosen = select(_columns.id, *(_columns[name] for name in DeadLetter._fields)).where(
        _columns.resolved_at.is_(None), _columns.id > after_id
    )
    if letter_id is not None:
        chosen = chosen.where(_columns.id == letter_id)
    rows = await connection.execute(chosen.order_by(_columns.id).limit(limit).with_for_update())
    return [OpenLetter(row[0], DeadLetter(*row[1:])) for row in rows]


async def note_retry(connection: AsyncConnection, letter_id: int, reason: str | None) -> None:
    """Resolve a letter or, with a `reason`, keep it with how it was refused this time."""
    changes = (
        {"resolved_at": func.now()}
        if reason is None
        else {"reason": reason, "retries": _columns.retries + 1}
    )
    await connection.execute(
        update(usage_dead_letter).where(_columns.id == letter_id).values(changes)
    )
