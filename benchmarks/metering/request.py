"""What the journal adds to a request: the same requests through the gateway's straight line, on
ports in memory, with a journal that keeps nothing and with the real one, in turn.

The engine answers at once: what is left of the time to the first token is the gateway's own, and
what the journal adds to it is the wait for its fsync. The end is when the client has all. The two
go in blocks, one after the other, whichever is first changing each time: what a pair of blocks
differs by is the journal's, whatever else the machine did in that second. Clients that never rest
keep the loop busy: 64 of them wait for each other's turns, and what counts there is CPU. It ends
after a time and not after a count, since a request costs what the machine lets it.
"""

import asyncio
import gc
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

import engine_events as events
import uvloop
from memory_gateway import MemoryGateway

from backend.loadtest.percentiles import nearest_rank
from billing.domain.usage_record import UsageRecord
from gateway.adapters.journal import Journal
from gateway.domain.lease import Admitted
from gateway.serving.ports import UsageJournal

SCRIPT = (events.content("hi"), events.finish("stop"), events.usage(5, 2))
FIRST_TOKEN = b'"hi"'
BLOCKS = ((1, 25), (64, 2))
"""Clients, and the requests of each in a block."""
COLUMNS = (
    "journal", "clients", "requests", "first token p50 ms", "p99", "end p50 ms", "p99",
    "CPU µs a request",
)  # fmt: skip


class Block(NamedTuple):
    """Requests of one journal that were served together."""

    first_ms: list[float]
    end_ms: list[float]
    cpu_us: float


class Result(NamedTuple):
    """A row of the table."""

    journal: str
    clients: int
    requests: int
    first_p50_ms: float
    first_p99_ms: float
    end_p50_ms: float
    end_p99_ms: float
    cpu_us: float
    """In the median block; of an `added` row in the median pair of blocks, as its p50s are."""

    def row(self) -> tuple[str, ...]:
        """As the table shows it."""
        shown = (self.first_p50_ms, self.first_p99_ms, self.end_p50_ms, self.end_p99_ms)
        return (
            self.journal,
            str(self.clients),
            f"{self.requests:,}",
            *(f"{wait_ms:.2f}" for wait_ms in shown),
            f"{self.cpu_us:.0f}",
        )


class NullJournal:
    """Keeps nothing, at once."""

    failing = False

    async def admitted(self, entry: Admitted) -> None:
        """Nothing."""

    async def ended(self, record: UsageRecord) -> None:
        """Nothing."""


async def _serve(journal: UsageJournal, clients: int, each: int) -> Block:
    """Clients that each ask so often, one after the other."""
    gateway = MemoryGateway(*[SCRIPT] * (clients * each))
    gateway.completions._journal = journal  # noqa: SLF001 - the only thing that differs
    first_ms: list[float] = []
    end_ms: list[float] = []

    async def ask() -> None:
        for _ in range(each):
            client = gateway.a_client(stream=True)
            written: list[float] = []

            def note(data: bytes, written: list[float] = written) -> None:
                if FIRST_TOKEN in data:
                    written.append(time.perf_counter())

            client.on_write = note
            began = time.perf_counter()
            await gateway.serve(client)
            ended = time.perf_counter()
            if client.status != 200 or not client.finished or len(written) != 1:
                raise RuntimeError(f"answered {client.status}: {client.sent!r}")
            first_ms.append((written[0] - began) * 1000)
            end_ms.append((ended - began) * 1000)

    gc.collect()
    cpu_s = time.process_time()
    await asyncio.gather(*(ask() for _ in range(clients)))
    cpu_s = time.process_time() - cpu_s
    return Block(first_ms, end_ms, cpu_s / (clients * each) * 1e6)


async def _in_turn(folder: Path, clients: int, each: int, seconds: float) -> list[Result]:
    none: list[Block] = []
    real: list[Block] = []
    journal = await Journal.open(folder / f"request-{clients}")
    ways: list[tuple[list[Block], UsageJournal]] = [(none, NullJournal()), (real, journal)]
    for _, way in ways:
        await _serve(way, clients, 1)  # what is only done once is done
    until = time.perf_counter() + seconds
    while time.perf_counter() < until or not none:
        for blocks, way in ways:
            blocks.append(await _serve(way, clients, each))
        ways.reverse()
    await journal.close()
    shown = [_together("none", clients, none), _together("real", clients, real)]
    return [*shown, _added(clients, none, real, *shown)]


def _together(name: str, clients: int, blocks: list[Block]) -> Result:
    first_ms = sorted(wait for block in blocks for wait in block.first_ms)
    end_ms = sorted(wait for block in blocks for wait in block.end_ms)
    return Result(
        name,
        clients,
        len(end_ms),
        nearest_rank(first_ms, 50),
        nearest_rank(first_ms, 99),
        nearest_rank(end_ms, 50),
        nearest_rank(end_ms, 99),
        median(block.cpu_us for block in blocks),
    )


def _added(
    clients: int, none: list[Block], real: list[Block], without: Result, with_it: Result
) -> Result:
    """What a median request of a block waited longer than one of its pair, in the median of all
    pairs. A block has no p99 of its own: those are of all requests, subtracted."""
    pairs = list(zip(none, real, strict=True))
    return Result(
        "added",
        clients,
        with_it.requests,
        median(median(on.first_ms) - median(off.first_ms) for off, on in pairs),
        with_it.first_p99_ms - without.first_p99_ms,
        median(median(on.end_ms) - median(off.end_ms) for off, on in pairs),
        with_it.end_p99_ms - without.end_p99_ms,
        median(on.cpu_us - off.cpu_us for off, on in pairs),
    )


def measure(folder: Path, *, seconds: float) -> list[Result]:
    """With one client, and with 64 at once, each for so long."""
    return [
        result
        for clients, each in BLOCKS
        for result in uvloop.run(_in_turn(folder, clients, each, seconds))
    ]
