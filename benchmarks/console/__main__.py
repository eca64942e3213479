"""What the console's pages take on the server, with many tenants and much usage.

`PYTHONPATH=.:tests python -m benchmarks.console [--tenants 10000] [--rows 10000000]
[--audit 200000] [--times 20] [--directory DIR] [--keep DIR] [--quick]` prints a table: each page
and each API that pages show, from the request to the last byte over loopback, and CPU time of the
gateway and of Postgres. Its exit status is 1 where the 95th percentile of a page (no API by itself,
no file) is over 300 ms (`--limit-ms`, 0 for none), or a page has no sample or fails. A database
that was filled in `--keep` is used again.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from servers import Stores, running_stores
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from benchmarks.admission import show
from benchmarks.console.filling import (
    ADMIN,
    FIRST,
    HOSTED,
    LEASE_MS,
    PASSWORD,
    TENANT_ADMIN,
    Filling,
    make_active,
    make_all_coarser,
)
from benchmarks.console.samples import NoSample, Sample, routes_of, samples_of
from benchmarks.console.serving import Serving, Visitor, cpu_ms, serving
from gateway.adapters.postgres import async_engine
from gateway.migrate import upgrade

COLUMNS = ("page", "status", "kB", "p50 ms", "p95 ms", "max ms", "CPU ms", "CPU ms of Postgres")
FILLED = "filled"
IDS = {
    "request_id": "SELECT request_id FROM usage_record WHERE tenant_id = :first"
    " ORDER BY admitted_at DESC LIMIT 1",
    "invoice_id": "SELECT id FROM invoice WHERE tenant_id = :first ORDER BY month DESC LIMIT 1",
    "credit_note_id": "SELECT id FROM credit_note LIMIT 1",
    "payment_id": "SELECT payment.id FROM payment JOIN invoice ON invoice.id = invoice_id"
    " ORDER BY month DESC LIMIT 1",
    "session_id": "SELECT id FROM user_session LIMIT 1",
    "user_id": "SELECT id FROM app_user WHERE email = 'tenant@weir.local'",
}
FIXED = {
    "tenant_id": FIRST,
    "key_id": f"k-{FIRST[2:]}-0",
    "worker_id": "w-0",
    "model_id": "large",
    "hosted.name": HOSTED,
}


class Measured:
    """What one page took."""

    def __init__(self, sample: Sample) -> None:
        self.sample = sample
        self.statuses: set[int] = set()
        self.size = 0
        self.took_ms: list[float] = []
        self.cpu_ms = self.postgres_ms = 0.0

    def at(self, permille: int) -> float:
        """The time that so many of a thousand took at most."""
        ordered = sorted(self.took_ms)
        return ordered[min(len(ordered) - 1, len(ordered) * permille // 1000)]

    @property
    def failed(self) -> bool:
        """Whether it was ever anything but the page, or a way to it."""
        return not self.statuses <= {200, 303}

    def row(self) -> list[str]:
        """As it is shown."""
        return [
            self.sample.path,
            "/".join(map(str, sorted(self.statuses))),
            f"{self.size / 1000:.0f}",
            *(f"{self.at(permille):.0f}" for permille in (500, 950, 1000)),
            f"{self.cpu_ms:.1f}",
            f"{self.postgres_ms:.1f}",
        ]


def measure(
    sample: Sample, visitor: Visitor, served: Serving, postgres: int, times: int
) -> Measured:
    """The page so many times, and once before, which is not counted."""
    found = Measured(sample)
    visitor.anew()
    visitor.get(sample.path)
    own, others = served.cpu_ms(), _postgres_ms(postgres)
    for _ in range(times):
        answer = visitor.get(sample.path)
        found.statuses.add(answer.status)
        found.size = answer.size
        found.took_ms.append(answer.ms)
    found.cpu_ms = (served.cpu_ms() - own) / times
    found.postgres_ms = (_postgres_ms(postgres) - others) / times
    return found


def _postgres_ms(pid: int) -> float:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return sum(cpu_ms(int(each)) for each in children)


async def ids_of(engine: AsyncEngine) -> Mapping[str, str]:
    """One of each kind that paths have names for."""
    now = datetime.now(UTC)
    ids = {
        **FIXED,
        "today": f"{now:%Y-%m-%d}T00:00:00Z",
        "today_minutes": f"{now:%Y-%m-%d}T00:00",
        "month": f"{now.replace(day=1) - timedelta(days=1):%Y-%m}",
        "day": f"{now - timedelta(days=1):%Y-%m-%d}T00:00:00Z",
    }
    async with engine.connect() as db:
        for name, statement in IDS.items():
            values = {"first": FIRST} if ":first" in statement else {}
            found = await db.scalar(text(statement), values)
            if found is not None:
                ids[name] = str(found)
    return ids


async def prepare(stores: Stores, folder: Path, asked: argparse.Namespace) -> list[Sample]:
    """Fill what is not filled yet; what is to be asked."""
    database_url = stores.postgres.database_url("postgres")
    engine = async_engine(database_url)
    began_s = time.monotonic()

    def say(what: str) -> None:
        _tell(f"{time.monotonic() - began_s:7.1f} s  {what}")

    try:
        await upgrade(database_url)
        if not (folder / FILLED).exists():
            filling = Filling(
                engine, tenants=asked.tenants, records=asked.rows, audit=asked.audit, say=say
            )
            await filling.fill()
            (folder / FILLED).touch()
        await make_all_coarser(engine)
        say("roll-ups of days")
        routes = await routes_of(database_url, stores.redis_url, folder)
        return samples_of(routes, await ids_of(engine))
    finally:
        await engine.dispose()


def run(folder: Path, asked: argparse.Namespace) -> int:
    """Measure and print; the exit status."""
    with running_stores(folder) as stores:
        samples = asyncio.run(prepare(stores, folder, asked))
        if asked.only:
            samples = [each for each in samples if asked.only in each.path]
        database_url = stores.postgres.database_url("postgres")
        with serving(database_url, stores.redis_url, folder, LEASE_MS) as served:
            asyncio.run(make_active(stores.redis_url, asked.tenants))
            visitors = {
                own: served.visitor(email, PASSWORD)
                for own, email in ((False, ADMIN), (True, TENANT_ADMIN))
            }
            pid = stores.postgres_process.pid
            found = [
                measure(each, visitors[each.own], served, pid, asked.times) for each in samples
            ]
    load = f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs"
    title = f"Pages with {asked.tenants:,} tenants and {asked.rows:,} records ({load})"
    show(title, COLUMNS, [each.row() for each in found])
    failed = [each for each in found if each.failed]
    held = [each for each in found if asked.limit_ms and each.sample.is_page]
    slow = [each for each in held if each.at(950) > asked.limit_ms]
    for each in failed:
        _tell(f"fails: {each.sample.path}: {each.statuses}")
    for each in slow:
        _tell(f"over {asked.limit_ms} ms: {each.sample.path}: {each.at(950):.0f}")
    return 1 if failed or slow else 0


def _tell(what: str) -> None:
    sys.stderr.write(what + "\n")
    sys.stderr.flush()


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tenants", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=10_000_000, help="Usage records.")
    parser.add_argument("--audit", type=int, default=200_000, help="Entries of the audit log.")
    parser.add_argument("--times", type=int, default=20, help="How often each page is asked for.")
    parser.add_argument("--only", default="", help="Pages with this in their path.")
    parser.add_argument("--limit-ms", type=int, default=300)
    parser.add_argument("--directory", type=Path, help="On the disk to be measured.")
    parser.add_argument("--keep", type=Path, help="A folder that is filled once and stays.")
    parser.add_argument("--quick", action="store_true", help="Seconds only: whether it runs.")
    asked = parser.parse_args()
    if asked.quick:
        asked.tenants, asked.rows, asked.audit = 50, 5_000, 500
        asked.times, asked.limit_ms = 2, 0
    try:
        if asked.keep is not None:
            asked.keep.mkdir(parents=True, exist_ok=True)
            return run(asked.keep, asked)
        with tempfile.TemporaryDirectory(dir=asked.directory) as folder:
            return run(Path(folder), asked)
    except NoSample as error:
        _tell(f"benchmarks.console: {error}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
