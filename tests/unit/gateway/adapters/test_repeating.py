"""Work that is done again whatever becomes of one turn."""

import asyncio
import logging

import pytest

from gateway.adapters.repeating import repeat

logger = logging.getLogger("test")


async def test_a_turn_that_fails_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """That Postgres is away is told once, until a turn comes through; a bug each time, whole."""
    turns: list[Exception | None] = [OSError(), OSError(), None, OSError(), KeyError("bug")]
    done = asyncio.Event()

    async def work() -> None:
        if not turns:
            done.set()
            await asyncio.Event().wait()
        outcome = turns.pop(0)
        if outcome is not None:
            raise outcome

    task = asyncio.create_task(repeat("work", work, 0, logger=logger))
    await asyncio.wait_for(done.wait(), 5)
    task.cancel()
    said = [(each.levelname, each.getMessage()) for each in caplog.records if each.name == "test"]
    away = ("WARNING", "work: not now (OSError)")
    assert said == [away, away, ("ERROR", "work: unexpected failure")]
