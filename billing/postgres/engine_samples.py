"""Samples of engines' counters in Postgres, in the order in which they were read.

Whose turn it is to read a worker is decided here and not in Redis: the witness sees also while
Redis is away, and Postgres's own clock and lock put the samples of all gateways in one order. One
that was read in a turn which is over is not stored: it may be older than what is there.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Select, Text, delete, func, insert, literal, or_, select, update
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.engine_counters import COUNTS, EngineCounters, begins_again
from billing.postgres.engine_tables import engine_sample, engine_turn

KEPT_WHOLE_DAYS = 7
"""Older ones are thinned out to the last of each quarter of an hour and life."""
_TURN = engine_turn.c
_SAMPLE = engine_sample.c


class Turn(NamedTuple):
    """A worker that is this gateway's to read, and since when (Postgres's time)."""

    worker_id: str
    turn: int
    asked_at: datetime


class Sample(NamedTuple):
    """What a worker had counted at some moment from `asked_at` to `taken_at` (Postgres's time).
    Within one `life` counts only grow, from 0 where `life` is above 1."""

    worker_id: str
    turn: int
    life: int
    asked_at: datetime
    taken_at: datetime
    counters: EngineCounters


async def take_turns(
    connection: AsyncConnection, worker_ids: Collection[str], gateway_id: str, *, every_ms: int
) -> list[Turn]:
    """Within the caller's transaction: those workers that nobody has begun to read for so long.
    Begin to read only once it is committed."""
    if not worker_ids:
        return []
    now = func.clock_timestamp()
    due = now - func.make_interval(0, 0, 0, 0, 0, 0, every_ms / 1000)
    named = func.unnest(literal(sorted(worker_ids), ARRAY(Text))).column_valued("worker_id")
    new = upsert(engine_turn).from_select(
        ["worker_id", "turn", "gateway_id"],
        select(named, literal(1), literal(gateway_id)).order_by(named),
    )
    taken = new.on_conflict_do_update(
        index_elements=[_TURN.worker_id],
        set_={"turn": _TURN.turn + 1, "gateway_id": gateway_id, "taken_at": now},
        # A turn in the time to come was taken before the clock stepped back.
        where=or_(_TURN.taken_at <= due, _TURN.taken_at > now),
    ).returning(_TURN.worker_id, _TURN.turn, _TURN.taken_at)
    return [Turn(*row) for row in await connection.execute(taken)]


async def store_sample(
    connection: AsyncConnection, turn: Turn, gateway_id: str, counters: EngineCounters
) -> bool:
    """Within the caller's transaction; False, and nothing stored, where another turn has begun."""
    held = await connection.scalar(
        select(_TURN.turn).where(_TURN.worker_id == turn.worker_id).with_for_update()
    )
    if held != turn.turn:
        return False
    last = await _last(connection, turn.worker_id)
    life = 1 if last is None else last.life + begins_again(last.counters, counters)
    if last is not None and last.life == life:
        await _fill_in(connection, last, counters)
    await connection.execute(
        insert(engine_sample).values(
            worker_id=turn.worker_id,
            turn=turn.turn,
            life=life,
            gateway_id=gateway_id,
            asked_at=turn.asked_at,
            **counters._asdict(),
        )
    )
    return True


async def samples_between(
    connection: AsyncConnection, worker_id: str, since: datetime, until: datetime
) -> list[Sample]:
    """In order: those taken from `since` on and before `until`, with the last one before and the
    first one after them, where there are any."""
    mine = _SAMPLE.worker_id == worker_id
    first = select(func.max(_SAMPLE.turn)).where(mine, _SAMPLE.taken_at < since).scalar_subquery()
    last = select(func.min(_SAMPLE.turn)).where(mine, _SAMPLE.taken_at >= until).scalar_subquery()
    rows = await connection.execute(
        _chosen()
        .where(
            mine,
            or_(first.is_(None), _SAMPLE.turn >= first),
            or_(last.is_(None), _SAMPLE.turn <= last),
        )
        .order_by(_SAMPLE.turn)
    )
    return [_sample(row) for row in rows]


async def sampled_workers(
    connection: AsyncConnection, since: datetime, until: datetime
) -> list[str]:
    """Workers with a sample from `since` on and before `until`, in order."""
    rows = await connection.scalars(
        select(_SAMPLE.worker_id)
        .where(_SAMPLE.taken_at >= since, _SAMPLE.taken_at < until)
        .distinct()
        .order_by(_SAMPLE.worker_id)
    )
    return list(rows)


async def thin_out(connection: AsyncConnection, *, days: int = KEPT_WHOLE_DAYS) -> int:
    """Of what is older than that leave the last sample of each quarter of an hour, and the first
    and last of each life. Returns how many went. Any number of gateways may do it at once."""
    before = func.now() - func.make_interval(0, 0, 0, days)
    quarter = func.floor(func.extract("epoch", _SAMPLE.taken_at) / 900)
    life = (_SAMPLE.worker_id, _SAMPLE.life)
    ranked = (
        select(
            _SAMPLE.worker_id,
            _SAMPLE.turn,
            func.row_number().over(partition_by=life, order_by=_SAMPLE.turn).label("from_first"),
            func.row_number()
            .over(partition_by=(*life, quarter), order_by=_SAMPLE.turn.desc())
            .label("from_last"),
        )
        .where(_SAMPLE.taken_at < before)
        .subquery()
    )
    result = await connection.execute(
        delete(engine_sample).where(
            _SAMPLE.worker_id == ranked.c.worker_id,
            _SAMPLE.turn == ranked.c.turn,
            ranked.c.from_first > 1,
            ranked.c.from_last > 1,
        )
    )
    return result.rowcount


def _chosen() -> Select[Any]:
    names = ("worker_id", "turn", "life", "asked_at", "taken_at", *EngineCounters._fields)
    return select(*(_SAMPLE[name] for name in names))


def _sample(row: Sequence[Any]) -> Sample:
    worker_id, turn, life, asked_at, taken_at, *counters = row
    return Sample(worker_id, turn, life, asked_at, taken_at, EngineCounters(*counters))


async def _fill_in(connection: AsyncConnection, last: Sample, counters: EngineCounters) -> None:
    """A count that is told for the first time was 0 before: an engine tells none of what it has not
    met. One that never tells it stays unknown."""
    told = [
        name
        for name in COUNTS
        if getattr(last.counters, name) is None and getattr(counters, name) is not None
    ]
    if told:
        await connection.execute(
            update(engine_sample)
            .where(_SAMPLE.worker_id == last.worker_id, _SAMPLE.life == last.life)
            .values({name: func.coalesce(_SAMPLE[name], 0) for name in told})
        )


async def _last(connection: AsyncConnection, worker_id: str) -> Sample | None:
    found = (
        await connection.execute(
            _chosen().where(_SAMPLE.worker_id == worker_id).order_by(_SAMPLE.turn.desc()).limit(1)
        )
    ).one_or_none()
    return None if found is None else _sample(found)
