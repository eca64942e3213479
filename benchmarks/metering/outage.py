"""Catching up: Postgres is stopped for a while under a steady load, and started again. How long
until all is there, the load going on, and what an append takes meanwhile."""

import asyncio
import time
from pathlib import Path
from typing import NamedTuple

import uvloop

from backend.loadtest.percentiles import nearest_rank
from benchmarks.metering.database import Database
from benchmarks.metering.shipping import BATCH_ROWS
from benchmarks.metering.traffic import an_admission, an_end
from gateway.adapters.journal import Journal
from gateway.adapters.postgres import async_engine
from gateway.adapters.shipper import Shipper

TICK_S = 0.01
SETTLE_S = 1.0
COLUMNS = (
    "Postgres away s", "requests/s", "requests behind at its return", "caught up after s",
    "shipped requests/s meanwhile", "append p99 ms before", "away", "catching up",
)  # fmt: skip


class Result(NamedTuple):
    """One outage."""

    away_s: float
    offered_per_s: int
    behind: int
    """Requests in the journal and not in Postgres when it serves again."""
    caught_up_s: float
    """From then on, until less than half a second is missing."""
    shipped_per_s: float
    p99_ms: tuple[float, float, float]

    def row(self) -> tuple[str, ...]:
        """As the table shows it."""
        return (
            f"{self.away_s:.0f}",
            f"{self.offered_per_s:,}",
            f"{self.behind:,}",
            f"{self.caught_up_s:.1f}",
            f"{self.shipped_per_s:,.0f}",
            *(f"{p99:.1f}" for p99 in self.p99_ms),
        )


class Load:
    """So many requests a second, each an admission and an end, whatever becomes of them."""

    def __init__(self, journal: Journal, per_s: int) -> None:
        self._journal = journal
        self._per_s = per_s
        self._tasks: set[asyncio.Task[None]] = set()
        self._waits_s: list[float] = []

    def p99_ms(self) -> float:
        """Of the appends since the last call."""
        waits, self._waits_s = sorted(self._waits_s), []
        return nearest_rank(waits, 99) * 1000

    async def run(self) -> None:
        """Until it is cancelled."""
        began, sent = time.perf_counter(), 0
        while True:
            due = int((time.perf_counter() - began) * self._per_s)
            for _ in range(due - sent):
                task = asyncio.create_task(self._one())
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            sent = due
            await asyncio.sleep(TICK_S)

    async def _one(self) -> None:
        entry = an_admission()
        began = time.perf_counter()
        await self._journal.admitted(entry)
        between = time.perf_counter()
        await self._journal.ended(an_end(entry))
        self._waits_s += (between - began, time.perf_counter() - between)

    async def ended(self) -> None:
        """Once what was sent has ended."""
        await asyncio.gather(*self._tasks)


async def _outage(database: Database, folder: Path, away_s: float, per_s: int) -> Result:
    engine = async_engine(database.url, pool_size=2)
    journal = await Journal.open(folder / "outage")
    shipper = Shipper(engine, journal, batch_rows=BATCH_ROWS)
    shipper.start()
    load = Load(journal, per_s)
    sending = asyncio.create_task(load.run())
    await asyncio.sleep(SETTLE_S)
    before = load.p99_ms()
    await asyncio.to_thread(database.stop)
    await asyncio.sleep(away_s)
    away = load.p99_ms()
    await asyncio.to_thread(database.start)
    behind, shipped = shipper.unshipped_records // 2, shipper.shipped_records
    began = time.perf_counter()
    while shipper.unshipped_records > per_s:  # noqa: ASYNC110 - a count, told by nobody
        await asyncio.sleep(TICK_S)
    took_s = time.perf_counter() - began
    shipped = shipper.shipped_records - shipped
    during = load.p99_ms()
    sending.cancel()
    await load.ended()
    if not await shipper.drain(60_000):
        raise RuntimeError("it did not catch up")
    await shipper.stop()
    await journal.close()
    await engine.dispose()
    return Result(away_s, per_s, behind, took_s, shipped / took_s, (before, away, during))


def measure(database: Database, folder: Path, *, away_s: float, per_s: int) -> Result:
    """One outage of so long."""
    return uvloop.run(_outage(database, folder, away_s, per_s))
