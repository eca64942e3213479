"""What the journal costs: records per second and how long an append waits, at 1, 64 and 1000
writers, beside the plain way on the same disk in the same minute: one fsync for each record.

`python benchmarks/journal.py [--directory DIR] [--seconds S]` prints a table. A round is one
interleaved pass over all rows; what is shown is the median round.
"""

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import click

from billing.domain.policy import CURRENT_POLICY
from billing.domain.usage_record import Outcome, UsageRecord, UsageSource
from gateway.adapters.journal import Journal
from gateway.adapters.journal.entries import Kind, encode_body, encode_entry
from gateway.adapters.journal.framing import encode_frame
from gateway.domain.lease import Admitted

WRITERS = (1, 64, 1000)
ROUNDS = 3
COLUMNS = ("way", "writers", "records/s", "p50 ms", "p99 ms")


class Result(NamedTuple):
    """One way with so many writers."""

    way: str
    writers: int
    records_per_s: float
    p50_ms: float
    p99_ms: float


def an_admission() -> Admitted:
    """A request of ordinary size."""
    return Admitted(
        request_id=uuid4(),
        tenant_id="acme",
        api_key_id="key_0123456789",
        model="llama-3.3-70b-instruct",
        request_class="interactive",
        admitted_at_ms=time.time_ns() // 1_000_000,
        prompt_tokens=900,
        reserved_tokens=1400,
        sequences=1,
    )


def an_end(entry: Admitted) -> UsageRecord:
    """How it ended."""
    return UsageRecord(
        request_id=entry.request_id,
        tenant_id=entry.tenant_id,
        api_key_id=entry.api_key_id,
        model=entry.model,
        request_class=entry.request_class,
        admitted_at_ms=entry.admitted_at_ms,
        ended_at_ms=entry.admitted_at_ms + 9000,
        first_token_at_ms=entry.admitted_at_ms + 300,
        prompt_tokens=900,
        cached_prompt_tokens=512,
        output_tokens=280,
        ttft_ms=300,
        tpot_us=31_000,
        itl_max_us=90_000,
        outcome=Outcome.COMPLETED,
        finish_reason="stop",
        usage_source=UsageSource.ENGINE_FINAL,
        worker_id="h100-3",
        billable=True,
        billing_policy=CURRENT_POLICY,
    )


class Clients:
    """Writers that wait for each append, and how long each append took."""

    def __init__(self, append: Callable[[Admitted | UsageRecord], Awaitable[None]]) -> None:
        self._append = append
        self._waits_s: list[float] = []

    async def run(self, way: str, writers: int, seconds: float) -> Result:
        """All of them for so long."""
        self._waits_s.clear()
        began = time.perf_counter()
        await asyncio.gather(*(self._write(began + seconds) for _ in range(writers)))
        took = time.perf_counter() - began
        cuts = statistics.quantiles(self._waits_s, n=100)
        count = len(self._waits_s)
        return Result(way, writers, count / took, cuts[49] * 1000, cuts[98] * 1000)

    async def _write(self, until: float) -> None:
        while time.perf_counter() < until:
            entry = an_admission()
            for record in (entry, an_end(entry)):
                began = time.perf_counter()
                await self._append(record)
                self._waits_s.append(time.perf_counter() - began)


class OneFsyncEach:
    """The plain way: write, fdatasync, return; in a thread, one at a time."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._turn = asyncio.Lock()
        self._seq = 0

    async def append(self, record: Admitted | UsageRecord) -> None:
        """Durable on return."""
        async with self._turn:
            self._seq += 1
            kind: Kind = "admitted" if isinstance(record, Admitted) else "ended"
            frame = encode_frame(encode_entry(kind, self._seq, encode_body(record)))
            await asyncio.to_thread(self._write, frame)

    def _write(self, frame: bytes) -> None:
        os.write(self._descriptor, frame)
        os.fdatasync(self._descriptor)

    def close(self) -> None:
        """Done."""
        os.close(self._descriptor)


async def measure(directory: Path, seconds: float) -> list[Result]:
    """One interleaved pass over all rows."""
    results = []
    for writers in WRITERS:
        plain = OneFsyncEach(directory / "plain")
        results.append(await Clients(plain.append).run("one fsync each", writers, seconds))
        plain.close()
        journal = await Journal.open(directory / "journal")

        async def append(record: Admitted | UsageRecord, journal: Journal = journal) -> None:
            if isinstance(record, Admitted):
                await journal.admitted(record)
            else:
                await journal.ended(record)

        results.append(await Clients(append).run("journal", writers, seconds))
        await journal.close()
    return results


def median_round(rounds: list[list[Result]]) -> list[Result]:
    """Of each row, the round whose rate is in the middle."""
    return [
        sorted(row, key=lambda result: result.records_per_s)[len(row) // 2]
        for row in zip(*rounds, strict=True)
    ]


def show(results: list[Result]) -> None:
    """Print a table."""
    click.echo(f"{COLUMNS[0]:<16}{COLUMNS[1]:>8}{COLUMNS[2]:>12}{COLUMNS[3]:>9}{COLUMNS[4]:>9}")
    for each in results:
        click.echo(
            f"{each.way:<16}{each.writers:>8}{each.records_per_s:>12,.0f}"
            f"{each.p50_ms:>9.2f}{each.p99_ms:>9.2f}"
        )


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--directory", type=Path, help="On the disk to be measured.")
    parser.add_argument("--seconds", type=float, default=2.0, help="For each row of each round.")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.directory) as folder:
        rounds = [asyncio.run(measure(Path(folder), arguments.seconds)) for _ in range(ROUNDS)]
    show(median_round(rounds))


if __name__ == "__main__":
    main()
