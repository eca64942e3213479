"""The journal: records a second, how long an append waits and what it costs, at 1, 64 and 1,000
writers, beside the plain way on the same disk in the same minute: one fdatasync a record."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

import uvloop

from backend.loadtest.percentiles import nearest_rank
from benchmarks.metering.traffic import an_admission, an_end
from billing.domain.usage_record import UsageRecord
from gateway.adapters.journal import Journal
from gateway.adapters.journal.entries import Kind, encode_body, encode_entry
from gateway.adapters.journal.framing import encode_frame
from gateway.domain.lease import Admitted

WRITERS = (1, 64, 1000)
COLUMNS = ("way", "writers", "journal records/s", "p50 ms", "p99 ms", "CPU µs a record")
Append = Callable[[Admitted | UsageRecord], Awaitable[None]]


class Result(NamedTuple):
    """One way with so many writers."""

    way: str
    writers: int
    records_per_s: float
    p50_ms: float
    p99_ms: float
    cpu_us: float
    """Of this whole process, the writers among it."""

    def row(self) -> tuple[str, ...]:
        """As the table shows it."""
        return (
            self.way,
            f"{self.writers:,}",
            f"{self.records_per_s:,.0f}",
            f"{self.p50_ms:.2f}",
            f"{self.p99_ms:.2f}",
            f"{self.cpu_us:.1f}",
        )


class OneSyncEach:
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


def appending(journal: Journal) -> Append:
    """Either kind of entry."""

    async def append(record: Admitted | UsageRecord) -> None:
        if isinstance(record, Admitted):
            await journal.admitted(record)
        else:
            await journal.ended(record)

    return append


async def write(way: str, append: Append, writers: int, seconds: float) -> Result:
    """Writers that each wait for one append before the next. Each repeats a request of its own,
    made before: making records is no part of the journal's work."""
    requests = [(entry, an_end(entry)) for entry in (an_admission() for _ in range(writers))]
    waits_s: list[float] = []

    async def one(records: tuple[Admitted, UsageRecord], until: float) -> None:
        began = time.perf_counter()
        while began < until:
            for record in records:
                await append(record)
                now = time.perf_counter()
                waits_s.append(now - began)
                began = now

    cpu_s, began = time.process_time(), time.perf_counter()
    await asyncio.gather(*(one(records, began + seconds) for records in requests))
    took_s, cpu_s = time.perf_counter() - began, time.process_time() - cpu_s
    count = len(waits_s)
    waits_s.sort()
    return Result(
        way,
        writers,
        count / took_s,
        nearest_rank(waits_s, 50) * 1000,
        nearest_rank(waits_s, 99) * 1000,
        cpu_s / count * 1e6,
    )


async def one_round(directory: Path, seconds: float) -> list[Result]:
    """One interleaved pass over all rows."""
    results = []
    for writers in WRITERS:
        plain = OneSyncEach(directory / "plain")
        results.append(await write("one sync each", plain.append, writers, seconds))
        plain.close()
        journal = await Journal.open(directory / "journal")
        results.append(await write("journal", appending(journal), writers, seconds))
        await journal.close()
    return results


def measure(directory: Path, *, seconds: float, rounds: int) -> list[Result]:
    """Of each row, the round whose rate is in the middle; on the loop that `weir serve` runs on."""
    passes = [uvloop.run(one_round(directory, seconds)) for _ in range(rounds)]
    return [
        sorted(row, key=lambda result: result.records_per_s)[len(row) // 2]
        for row in zip(*passes, strict=True)
    ]
