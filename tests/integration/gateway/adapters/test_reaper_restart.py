"""A gateway that starts again takes from its copies what its disk does not know."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from reaping import Graves, died, graves
from shipping import DRAIN_MS
from usage_examples import a_record, an_admission

from billing.domain.usage_record import UsageRecord
from gateway.adapters.journal import Journal
from gateway.adapters.reaper_restart import CopiedEnds, settle_when_shipped
from gateway.adapters.redis import connect_redis
from gateway.adapters.second_copy_records import Copies
from gateway.adapters.shipper import Shipper


@pytest.fixture
async def system(database_url: str, redis_url: str) -> AsyncIterator[Graves]:
    """Empty stores of this test's own."""
    async with graves(database_url, redis_url) as made:
        yield made


async def test_what_ran_has_the_counts_last_told_and_an_end_is_an_end(
    system: Graves, tmp_path: Path
) -> None:
    """An end that only the copy has is the request's own, and is told to be settled once Postgres
    has it; a third, of which nothing was told, claims nothing. At the next start none is open."""
    ended, running, silent = an_admission(), an_admission(), an_admission()
    gateway_id = await died(system, tmp_path, ended, running, silent)
    record = a_record(ended)
    await system.copied(gateway_id, record, told={running.request_id: (12, 7)})
    ends = CopiedEnds(Copies(system.redis), lambda record: record)
    journal = await Journal.open(tmp_path, known=ends.known)
    assert journal.recovered.lost == (running, silent)
    assert journal.recovered.ended == (record,)
    shipper, settled = Shipper(system.engine, journal, interval_ms=5), list[UsageRecord]()
    settle_when_shipped(shipper, journal.recovered.ended, settled.extend)
    shipper.start()
    assert await shipper.drain(DRAIN_MS)
    await shipper.stop()
    await journal.close()
    assert settled == [record]
    assert await system.rows() == {
        ended.request_id: ("completed", True, 12, 20, "engine_final", []),
        running.request_id: ("gateway_lost", True, 12, 7, "counted", []),
        silent.request_id: ("gateway_lost", True, 0, 0, "estimated", []),
    }
    again = await Journal.open(tmp_path, known=ends.known)
    assert (again.recovered.lost, again.recovered.ended) == ((), ())
    await again.close()


async def test_without_the_store_it_starts_all_the_same(
    system: Graves, tmp_path: Path, free_port: int
) -> None:
    """What ran is lost, and nothing is claimed of it."""
    request = an_admission()
    await died(system, tmp_path, request)
    away = connect_redis(f"redis://127.0.0.1:{free_port}", timeout_ms=100)
    ends = CopiedEnds(Copies(away), lambda record: record)
    async with asyncio.timeout(10):
        journal = await Journal.open(tmp_path, known=ends.known)
    assert journal.recovered.lost == (request,)
    await journal.close()
    await away.aclose()
