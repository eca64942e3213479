"""What closing a month costs: a draft, the issue, a void, the next month with late records, and
usage by each dimension, from so many records of one tenant.

`PYTHONPATH=.:tests python -m benchmarks.billing [--rows 1000000,10000000] [--directory DIR]
[--quick]` prints tables. Records are made by SQL, with their costs; beside the tenant's there is a
tenth as many of ten others. Memory is what the server's process and this one have of their own
(without shared buffers), at its highest. Each total is compared with the records' own sum.
"""

import argparse
import asyncio
import os
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from benchmarks.admission import show
from benchmarks.metering.database import Database, migrated
from billing.domain.invoicing.issuing import Billed
from billing.domain.invoicing.party import Customer, Seller
from billing.domain.invoicing.periods import Month, month_of_instant, previous
from billing.postgres.invoice_draft import Drafted, draft_invoice
from billing.postgres.invoice_issue import Issued, issue_invoice
from billing.postgres.invoice_settle import void_invoice
from billing.postgres.rolled_usage import sum_rolled_usage
from billing.postgres.rollups import roll_up
from billing.postgres.sellers import save_seller
from billing.postgres.usage_records import GroupBy, UsageFilter, sum_usage
from gateway.adapters.postgres import async_engine

CHUNK = 250_000
COLUMNS = (
    "what", "records", "s", "s of CPU in Postgres", "s a million", "MB of Postgres", "MB here",
    "MB of temporary files",
)  # fmt: skip
USAGE_COLUMNS = ("usage by", "records", "from roll-ups ms", "from records ms")
ACME = Billed(customer=Customer(tenant_id="acme", name="Acme"), currency="USD", time_zone="UTC")
PRICES = """
INSERT INTO price_entry (model, provider, currency, input_pico, cached_input_pico, output_pico,
    request_pico, effective_from)
VALUES ('large', 'self', 'USD', 600000, 60000, 1800000, 0, '2020-01-01Z'),
    ('small', 'self', 'USD', 50000, NULL, 200000, 100000, '2020-01-01Z'),
    ('other', 'hosted:h', 'USD', 2500000, 250000, 10000000, 0, '2020-01-01Z')
"""
# Twenty keys, three models, two classes; ids whose time runs through the month evenly.
RECORDS = """
INSERT INTO usage_record (request_id, admitted_at, tenant_id, api_key_id, model, class,
    first_token_at, ended_at, prompt_tokens, cached_prompt_tokens, output_tokens, reasoning_tokens,
    sequences, queue_ms, ttft_ms, tpot_us, itl_max_us, outcome, final, finish_reason, usage_source,
    usage_flags, provider, worker_id, attempts, billable, billing_policy, price_id, cost_pico,
    list_cost_pico, currency, gateway_id, boot, seq)
SELECT made.id, at, tenant, 'key-' || n % 20, price.model,
    CASE WHEN n % 5 = 0 THEN 'batch' ELSE 'interactive' END, at, at, prompt, cached, output,
    output / 4, 1, 2, 40, 9000, 15000, 'completed', true, 'stop', 'engine_final', '{}',
    price.provider, 'w-' || n % 8, 1, true, 1, price.id, cost, cost, 'USD', 'gw-' || n % 4, 1, n
FROM (
    SELECT n, unix_ms_time(ms) AS at, 100 + n * 7919 % 3000 AS prompt, n * 104729 % 100 AS cached,
        20 + n * 1299709 % 800 AS output,
        CAST(lpad(to_hex(ms), 12, '0') || '7' || lpad(to_hex(n % 4096), 3, '0') || '8'
            || lpad(to_hex(n), 15, '0') AS uuid) AS id,
        CASE WHEN n % 11 = 10 THEN 'other-' || n % 10 ELSE 'acme' END AS tenant
    FROM (
        SELECT n, CAST(:start AS bigint) + n * CAST(:span AS bigint) / CAST(:count AS bigint) AS ms
        FROM generate_series(CAST(:first AS bigint), CAST(:last AS bigint)) AS n
    ) AS numbered
) AS made
JOIN price_entry AS price ON price.model = (ARRAY['large', 'small', 'other'])[1 + made.n % 3]
CROSS JOIN LATERAL (SELECT
    (prompt - cached) * price.input_pico + cached * coalesce(cached_input_pico, price.input_pico)
    + output * price.output_pico + price.request_pico AS cost) AS rated
"""


class Measured(NamedTuple):
    """What one piece of work took."""

    what: str
    records: int
    seconds: float
    cpu_s: float
    server_mb: float
    own_mb: float
    temporary_mb: float

    def row(self) -> list[str]:
        """As it is shown."""
        return [
            self.what,
            f"{self.records:,}",
            f"{self.seconds:.2f}",
            f"{self.cpu_s:.2f}",
            f"{self.seconds / self.records * 1e6:.2f}",
            *(f"{mb:.0f}" for mb in (self.server_mb, self.own_mb, self.temporary_mb)),
        ]


class Closing:
    """A month of so many records in a database of its own."""

    def __init__(self, database: Database, engine: AsyncEngine, period: Month, rows: int) -> None:
        self._database = database
        self._engine = engine
        self._period = period
        self._rows = rows
        self.found: list[Measured] = []

    async def run(self) -> list[list[str]]:
        """Measure all; returns what usage took."""
        await self._make()
        await self._timed("roll-ups", self._roll_up)
        async with self._engine.connect() as db:
            await db.execution_options(isolation_level="AUTOCOMMIT")
            await db.execute(text("VACUUM ANALYZE"))
        name = self._period.name
        draft: Drafted = await self._timed("draft", lambda db: draft_invoice(db, ACME, name, by=""))
        issued: Issued = await self._timed(
            "issue",
            lambda db: issue_invoice(db, draft.invoice.id, ACME, expected=[], by="benchmark"),
        )
        await self._agrees(issued)
        usage = [await self._usage(group_by) for group_by in GroupBy]
        await self._late()
        await self._timed("the next, 1,000 late", self._next)
        await self._timed(
            "void", lambda db: void_invoice(db, issued.invoice.id, reason="benchmark", by="")
        )
        return usage

    async def _make(self) -> None:
        async with self._engine.begin() as db:
            await save_seller(db, Seller(name="Benchmark", country="DE"), by="benchmark")
            await db.execute(text(PRICES))
        total = self._rows * 11 // 10
        for first in range(0, total, CHUNK):
            await self._insert(first, min(first + CHUNK, total) - 1, total)

    async def _insert(self, first: int, last: int, count: int) -> None:
        start_ms, end_ms = (
            round(at.timestamp() * 1000) for at in (self._period.start, self._period.end)
        )
        values = {"start": start_ms, "span": end_ms - start_ms, "count": count}
        async with self._engine.begin() as db:
            await db.execute(text(RECORDS), {**values, "first": first, "last": last})

    async def _roll_up(self, db: AsyncConnection) -> None:
        while await roll_up(db):
            await db.commit()

    async def _agrees(self, issued: Issued) -> None:
        async with self._engine.connect() as db:
            row = (
                await db.execute(
                    text(
                        "SELECT count(*), sum(cost_pico) FROM usage_records"
                        " WHERE tenant_id = 'acme'"
                    )
                )
            ).one()
        if (issued.invoice.row_count, issued.invoice.cost_pico) != tuple(map(int, row)):
            raise RuntimeError(f"the invoice is not its records: {row}")

    async def _usage(self, group_by: GroupBy) -> list[str]:
        chosen = UsageFilter(tenant_id="acme", since=self._period.start, until=self._period.end)
        ways = (sum_rolled_usage, sum_usage)
        took: dict[Any, list[float]] = {way: [] for way in ways}
        said = []
        async with self._engine.connect() as db:
            for _ in range(3):
                for way in ways:
                    began_s = time.perf_counter()
                    said.append(await way(db, chosen, group_by=group_by))
                    took[way].append((time.perf_counter() - began_s) * 1000)
        if any(each != said[0] for each in said):
            raise RuntimeError(f"roll-ups and records differ by {group_by}")
        middle = [f"{sorted(took[way])[1]:,.0f}" for way in ways]
        return [group_by.value, f"{self._rows:,}", *middle]

    async def _late(self) -> None:
        """A thousand more records at the end of the month, which are rolled up."""
        total = self._rows * 11 // 10
        await self._insert(total - 1_100, total - 1, total + 1_100)
        async with self._engine.connect() as db:
            await self._roll_up(db)

    async def _next(self, db: AsyncConnection) -> Drafted:
        later = month_of_instant(self._period.end, "UTC")
        drafted = await draft_invoice(db, ACME, later.name, by="benchmark")
        if drafted.invoice.row_count != 1_000:
            raise RuntimeError(f"{drafted.invoice.row_count} late records, not 1,000")
        return drafted

    async def _timed(self, what: str, work: Callable[[AsyncConnection], Awaitable[Any]]) -> Any:
        async with self._engine.connect() as db:
            pid = await db.scalar(text("SELECT pg_backend_pid()"))
            temporary = await self._temporary(db)
            await db.rollback()
            cpu_s, began_s = self._database.cpu_s(), time.perf_counter()
            with highest_memory(pid, os.getpid()) as highest:
                result = await work(db)
                await db.commit()
            seconds = time.perf_counter() - began_s
            cpu_s = self._database.cpu_s() - cpu_s
            # A process tells what it wrote once it is idle.
            await asyncio.sleep(1.1)
            await db.execute(text("SELECT pg_stat_force_next_flush()"))
            await db.rollback()
            temporary = await self._temporary(db) - temporary
        took = Measured(what, self._rows, seconds, cpu_s, *highest, temporary / 1e6)
        self.found.append(took)
        return result

    async def _temporary(self, db: AsyncConnection) -> int:
        return int(
            await db.scalar(
                text("SELECT temp_bytes FROM pg_stat_database WHERE datname = current_database()")
            )
            or 0
        )


@contextmanager
def highest_memory(*pids: int) -> Iterator[list[float]]:
    """MB that each process had of its own at most, looked at fifty times a second; filled in when
    the block ends."""
    highest, over = [0.0] * len(pids), threading.Event()

    def look() -> None:
        while not over.wait(0.02):
            for index, pid in enumerate(pids):
                highest[index] = max(highest[index], _own_mb(pid))

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield highest
    finally:
        over.set()
        looking.join()


def _own_mb(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1000


async def measure(database: Database, rows: int) -> tuple[list[list[str]], list[list[str]]]:
    """Rows of both tables."""
    engine = async_engine(database.url)
    closing = Closing(database, engine, previous(month_of_instant(datetime.now(UTC), "UTC")), rows)
    usage = await closing.run()
    await engine.dispose()
    return [each.row() for each in closing.found], usage


def run(sizes: Sequence[int], folder: Path) -> None:
    """Measure and print, each size in a database of its own."""
    closed: list[list[str]] = []
    usage: list[list[str]] = []
    for rows in sizes:
        with migrated(folder / f"rows-{rows}") as database:
            some, by_dimension = asyncio.run(measure(database, rows))
        closed += some
        usage += by_dimension
    load = f"(load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs)"
    show(f"Closing a month {load}", COLUMNS, closed)
    show(f"Usage {load}", USAGE_COLUMNS, usage)


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default="1000000,10000000", help="Records of the tenant.")
    parser.add_argument("--directory", type=Path, help="On the disk to be measured.")
    parser.add_argument("--quick", action="store_true", help="Seconds only: whether it runs.")
    asked = parser.parse_args()
    sizes = [int(each) for each in asked.rows.split(",")]
    with tempfile.TemporaryDirectory(dir=asked.directory) as folder:
        run([20_000] if asked.quick else sizes, Path(folder))


if __name__ == "__main__":
    main()
