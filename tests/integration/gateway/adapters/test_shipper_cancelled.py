"""A shipper that is stopped, at whatever it was waiting for."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Generator
from pathlib import Path
from typing import Any

import pytest
from shipping import DRAIN_MS, ids, query, rows, serve
from sqlalchemy.ext.asyncio import AsyncEngine

from billing.domain.usage_record import UsageRecord
from billing.postgres.shipments import COPY_ROWS_MIN
from gateway.adapters.journal import Journal
from gateway.adapters.postgres import async_engine
from gateway.adapters.shipper import Shipper


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine on a migrated database of this test's own."""
    opened = async_engine(database_url)
    yield opened
    await opened.dispose()


class CancelledAt:
    """Runs a coroutine and cancels its task where it waits for the `number`th time."""

    def __init__(self, coroutine: Coroutine[Any, Any, None], number: int) -> None:
        self._inner = coroutine.__await__()
        self._left = number

    def __await__(self) -> Generator[Any, Any, bool]:
        """Whether it was cancelled: it waited that often."""
        task = asyncio.current_task()
        assert task is not None
        thrown: BaseException | None = None
        while True:
            try:
                waited_for = self._inner.send(None) if thrown is None else self._inner.throw(thrown)
            except StopIteration:
                return False
            except asyncio.CancelledError:
                task.uncancel()
                return True
            self._left -= 1
            if self._left == 0:
                task.cancel()
            thrown = None
            try:
                yield waited_for
            except BaseException as error:  # noqa: BLE001 - it is handed on
                thrown = error


async def test_m03_a_shipment_that_is_cancelled_anywhere(
    engine: AsyncEngine, tmp_path: Path
) -> None:
    """At the first thing it waits for, at the second, and so on to the last: what it had taken is
    a row, once, by it or by the next."""
    journal = await Journal.open(tmp_path)
    served: list[UsageRecord] = []
    number, again = 0, True
    while again:
        number += 1
        assert number < 500
        served += await serve(journal, COPY_ROWS_MIN + 1)
        shipper = Shipper(engine, journal)
        again = await asyncio.create_task(_awaited(CancelledAt(shipper._ship_all(), number)))
    assert number > 20
    last = Shipper(engine, journal)
    last.start()
    assert await last.drain(DRAIN_MS)
    assert await rows(engine) == ids(served)
    assert await query(engine, "SELECT count(*) FROM usage_attempt") == [(len(served),)]
    count = len(served)
    assert await query(
        engine, "SELECT seq, admitted_count, ended_count FROM journal_watermark"
    ) == [(2 * count, count, count)]
    await last.stop()
    await journal.close()


async def _awaited(what: CancelledAt) -> bool:
    return await what
