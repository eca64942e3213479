"""Shipping: rows a second from a journal's files into Postgres, and what a record costs there and
here. Beside it, in the same rounds and with the same rows: INSERT with its conflict clause from
memory, and plain COPY of what was encoded before, which is what Postgres alone takes.

A request is one record and one attempt: two rows, from two entries of a journal.
"""

import asyncio
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import uvloop
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from benchmarks.metering.database import Database
from benchmarks.metering.traffic import an_admission, an_end
from billing.postgres.usage_direct import Encoded, copy_new, encode
from billing.postgres.usage_insert import JournaledRecord, insert_batch
from gateway.adapters.journal import Journal
from gateway.adapters.postgres import async_engine
from gateway.adapters.shipper import Shipper

BATCH_ROWS = 1000
"""As `WEIR_SHIPPER_BATCH_ROWS` is by default."""
DRAIN_MS = 600_000
COLUMNS = (
    "way", "requests/s", "rows/s (records + attempts)", "journal entries/s",
    "CPU µs a request, this process", "CPU µs a request, Postgres",
)  # fmt: skip


class Result(NamedTuple):
    """One way, from the first row to the last commit."""

    way: str
    requests_per_s: float
    own_us: float
    postgres_us: float
    from_journal: bool

    def row(self) -> tuple[str, ...]:
        """As the table shows it."""
        return (
            self.way,
            f"{self.requests_per_s:,.0f}",
            f"{2 * self.requests_per_s:,.0f}",
            f"{2 * self.requests_per_s:,.0f}" if self.from_journal else "–",
            f"{self.own_us:.1f}",
            f"{self.postgres_us:.1f}",
        )


class Bench:
    """A database, and as many requests for each way."""

    def __init__(self, database: Database, engine: AsyncEngine, folder: Path, count: int) -> None:
        self._database = database
        self._engine = engine
        self._folder = folder
        self._count = count

    async def one_round(self) -> list[Result]:
        """Every way once, each into empty tables."""
        return [
            await self._insert(),
            await self._copy(),
            await self._ship("shipper", 1),
            await self._ship("two shippers, two connections", 2),
        ]

    async def _timed(
        self, way: str, work: Callable[[], Awaitable[None]], *, from_journal: bool
    ) -> Result:
        async with self._engine.begin() as db:
            await db.execute(text("TRUNCATE usage_record, usage_attempt"))
        async with self._engine.connect() as db:
            autocommit = await db.execution_options(isolation_level="AUTOCOMMIT")
            await autocommit.execute(text("CHECKPOINT"))
        own_s, postgres_s = time.process_time(), self._database.cpu_s()
        began = time.perf_counter()
        await work()
        took_s = time.perf_counter() - began
        own_s, postgres_s = time.process_time() - own_s, self._database.cpu_s() - postgres_s
        async with self._engine.connect() as db:
            stored = await db.scalar(text("SELECT count(*) FROM usage_attempt"))
        if stored != self._count:
            raise RuntimeError(f"{way}: {stored} of {self._count} are there")
        micros = 1e6 / self._count
        return Result(way, self._count / took_s, own_s * micros, postgres_s * micros, from_journal)

    def _batches(self) -> list[list[JournaledRecord]]:
        rows = [
            JournaledRecord(an_end(an_admission()), "gw-1", 1, seq)
            for seq in range(1, self._count + 1)
        ]
        return [rows[at : at + BATCH_ROWS] for at in range(0, len(rows), BATCH_ROWS)]

    async def _insert(self) -> Result:
        batches = self._batches()

        async def work() -> None:
            for batch in batches:
                async with self._engine.begin() as db:
                    await insert_batch(db, batch)

        return await self._timed("INSERT of rows in memory", work, from_journal=False)

    async def _copy(self) -> Result:
        encoded: Sequence[Encoded] = [encode(batch) for batch in self._batches()]

        async def work() -> None:
            for each in encoded:
                async with self._engine.begin() as db:
                    await copy_new(db, each)

        return await self._timed("COPY of encoded rows", work, from_journal=False)

    async def _ship(self, way: str, journals: int) -> Result:
        # Each time new ones: an earlier boot's files would be looked through first.
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        opened = [await Journal.open(folder / str(number)) for number in range(journals)]
        for journal in opened:
            await fill(journal, self._count // journals)
        shippers = [Shipper(self._engine, each, batch_rows=BATCH_ROWS) for each in opened]

        async def work() -> None:
            for shipper in shippers:
                shipper.start()
            done = await asyncio.gather(*(shipper.drain(DRAIN_MS) for shipper in shippers))
            if not all(done):
                raise RuntimeError("it did not catch up")

        result = await self._timed(way, work, from_journal=True)
        for shipper, journal in zip(shippers, opened, strict=True):
            await shipper.stop()
            await journal.close()
        shutil.rmtree(folder)
        return result


async def fill(journal: Journal, count: int) -> None:
    """So many requests, ended."""

    async def one() -> None:
        entry = an_admission()
        await journal.admitted(entry)
        await journal.ended(an_end(entry))

    for first in range(0, count, 500):
        await asyncio.gather(*(one() for _ in range(min(500, count - first))))


def measure(database: Database, folder: Path, *, count: int, rounds: int) -> list[Result]:
    """Of each way, the round whose rate is in the middle."""

    async def all_rounds() -> list[list[Result]]:
        engine = async_engine(database.url, pool_size=2)
        try:
            bench = Bench(database, engine, folder, count)
            return [await bench.one_round() for _ in range(rounds)]
        finally:
            await engine.dispose()

    return [
        sorted(row, key=lambda result: result.requests_per_s)[len(row) // 2]
        for row in zip(*uvloop.run(all_rounds()), strict=True)
    ]
