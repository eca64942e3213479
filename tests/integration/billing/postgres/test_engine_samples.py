"""Engines' counters in Postgres: whose turn, in which order, which life."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from billing.domain.engine_counters import EngineCounters
from billing.postgres.engine_samples import (
    Turn,
    sampled_workers,
    samples_between,
    store_sample,
    take_turns,
    thin_out,
)
from gateway.adapters.postgres import async_engine

ALWAYS = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


@pytest.fixture
async def postgres(database_url: str) -> AsyncIterator[AsyncEngine]:
    """A pool on a database of this test's own."""
    engine = async_engine(database_url, pool_size=8)
    yield engine
    await engine.dispose()


async def turns(
    postgres: AsyncEngine, *workers: str, gateway: str = "g", every_ms: int = 0
) -> list[Turn]:
    """Turns taken, in the order of the workers."""
    async with postgres.begin() as db:
        return sorted(await take_turns(db, workers, gateway, every_ms=every_ms))


async def store(postgres: AsyncEngine, turn: Turn, **counts: int | str | None) -> bool:
    """Store a sample of a turn."""
    async with postgres.begin() as db:
        return await store_sample(db, turn, "g", EngineCounters(**counts))  # type: ignore[arg-type]


async def sampled(postgres: AsyncEngine, worker: str, **counts: int | str | None) -> None:
    """One that a gateway took and stored."""
    (turn,) = await turns(postgres, worker)
    assert await store(postgres, turn, **counts)


async def lives(postgres: AsyncEngine, worker: str) -> list[tuple[int, int | None]]:
    """Of all its samples: which life, how many requests."""
    async with postgres.connect() as db:
        found = await samples_between(db, worker, *ALWAYS)
    return [(sample.life, sample.counters.requests) for sample in found]


async def test_one_gateway_at_a_time(postgres: AsyncEngine) -> None:
    """Of twenty that come at once one has the turn; the next interval is another's."""
    taken = await asyncio.gather(
        *(turns(postgres, "w", "v", gateway=f"g{n}", every_ms=60_000) for n in range(20))
    )
    assert sorted(turn.worker_id for each in taken for turn in each) == ["v", "w"]
    assert await turns(postgres, "w", every_ms=60_000) == []
    assert [turn.turn for turn in await turns(postgres, "w", every_ms=0)] == [2]
    assert await turns(postgres) == []


async def test_a_clock_that_stepped_back_does_not_stop_it(postgres: AsyncEngine) -> None:
    """A turn in the time to come is over."""
    await turns(postgres, "w")
    async with postgres.begin() as db:
        await db.execute(text("UPDATE engine_turn SET taken_at = now() + interval '1 hour'"))
    assert len(await turns(postgres, "w", every_ms=5_000)) == 1


async def test_a_turn_that_is_over_stores_nothing(postgres: AsyncEngine) -> None:
    """A gateway that hung between reading and storing: its sample is older than what is there,
    and would look like an engine that began again."""
    (slow,) = await turns(postgres, "w")
    await sampled(postgres, "w", requests=10)
    assert not await store(postgres, slow, requests=5)
    assert await lives(postgres, "w") == [(1, 10)]


async def test_lives(postgres: AsyncEngine) -> None:
    """A count that fell or another mark begins one; that nothing was counted yet, none."""
    for requests, mark in ((None, "a"), (4, "a"), (9, "a"), (2, "a"), (30, "b"), (None, "b")):
        await sampled(postgres, "w", requests=requests, mark=mark)
    await sampled(postgres, "v", requests=1)
    assert await lives(postgres, "w") == [(1, 0), (1, 4), (1, 9), (2, 2), (3, 30), (4, None)]
    assert await lives(postgres, "v") == [(1, 1)]


async def test_what_is_told_for_the_first_time_was_0(postgres: AsyncEngine) -> None:
    """An engine tells no count of what it has not met; what it never tells stays unknown, also
    where another life told it."""
    await sampled(postgres, "w", requests=7, aborted=1)
    for requests in (None, None, 5, 6):
        await sampled(postgres, "w", requests=requests, output_tokens=requests)
    assert await lives(postgres, "w") == [(1, 7), (2, 0), (2, 0), (2, 5), (2, 6)]
    async with postgres.connect() as db:
        found = await samples_between(db, "w", *ALWAYS)
    assert [each.counters.output_tokens for each in found] == [None, 0, 0, 5, 6]
    assert [each.counters.aborted for each in found] == [1, None, None, None, None]


async def test_a_range_and_what_is_around_it(postgres: AsyncEngine) -> None:
    """Half open, with the last sample before and the first after: what was counted at its ends
    lies between those."""
    for requests in range(5):
        await sampled(postgres, "w", requests=requests)
    await sampled(postgres, "v", requests=99)
    async with postgres.connect() as db:
        taken = [each.taken_at for each in await samples_between(db, "w", *ALWAYS)]

        async def found(since: datetime, until: datetime) -> list[int | None]:
            samples = await samples_between(db, "w", since, until)
            return [sample.counters.requests for sample in samples]

        assert await found(taken[1], taken[3]) == [0, 1, 2, 3]
        moment = timedelta(microseconds=1)
        assert await found(taken[1] + moment, taken[3]) == [1, 2, 3]
        assert await found(ALWAYS[0], taken[0]) == [0]
        assert await found(taken[4] + moment, ALWAYS[1]) == [4]
        assert await sampled_workers(db, *ALWAYS) == ["v", "w"]
        assert await sampled_workers(db, ALWAYS[0], taken[4] + moment) == ["w"]


async def test_old_ones_are_thinned_out(postgres: AsyncEngine) -> None:
    """The last of each quarter of an hour stays, the first and last of each life, and all that is
    young. Doing it again changes nothing."""
    minutes = [0, 1, 2, 14, 15, 16, 29, 31, 33]
    for number, _ in enumerate(minutes):
        await sampled(postgres, "w", requests=number if number < 7 else number - 7)
    await sampled(postgres, "w", requests=50)
    async with postgres.begin() as db:
        for number, minute in enumerate(minutes):
            await db.execute(
                text(
                    "UPDATE engine_sample SET taken_at = date_trunc('hour', now())"
                    " - interval '10 days' + make_interval(mins => :minute) WHERE turn = :turn"
                ),
                {"minute": minute, "turn": number + 1},
            )
        assert await thin_out(db) == 4
        assert await thin_out(db) == 0
    # 0 is the first; 14, 29 and 33 end their quarters; 31 begins a life.
    assert await lives(postgres, "w") == [(1, 0), (1, 3), (1, 6), (2, 0), (2, 1), (2, 50)]
