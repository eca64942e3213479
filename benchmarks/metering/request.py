"""What the journal adds to a request: the same requests through the gateway's straight line, on
ports in memory, with a journal that keeps nothing and with the real one, in turn.

The engine answers at once: what is left of the time to the first token is the gateway's own, and
what the journal adds to it is the wait for its fsync. The end is when the client has all.
"""

import asyncio
import time
from pathlib import Path
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
COLUMNS = (
    "journal", "clients", "first token p50 ms", "p99", "end p50 ms", "p99", "CPU µs a request",
)  # fmt: skip


class Result(NamedTuple):
    """One journal under so many clients."""

    journal: str
    clients: int
    first_ms: list[float]
    end_ms: list[float]
    cpu_us: float

    def row(self) -> tuple[str, ...]:
        """As the table shows it."""
        shown = [
            f"{nearest_rank(sorted(waits), percent):.2f}"
            for waits in (self.first_ms, self.end_ms)
            for percent in (50, 99)
        ]
        return (self.journal, str(self.clients), *shown, f"{self.cpu_us:.0f}")


class NullJournal:
    """Keeps nothing, at once."""

    failing = False

    async def admitted(self, entry: Admitted) -> None:
        """Nothing."""

    async def ended(self, record: UsageRecord) -> None:
        """Nothing."""


async def _serve(name: str, journal: UsageJournal, clients: int, each: int) -> Result:
    """Clients that each ask so often, one after the other."""
    gateway = MemoryGateway(*[SCRIPT] * (clients * each))
    gateway.completions._journal = journal  # noqa: SLF001 - the only thing that differs
    first_ms: list[float] = []
    end_ms: list[float] = []

    async def ask() -> None:
        for _ in range(each):
            client = gateway.a_client(stream=True)
            written: list[float] = []

            def note(_: bytes, written: list[float] = written) -> None:
                written.append(time.perf_counter())

            client.on_write = note
            began = time.perf_counter()
            await gateway.serve(client)
            ended = time.perf_counter()
            if client.status != 200 or not client.finished:
                raise RuntimeError(f"answered {client.status}: {client.sent!r}")
            first_ms.append((written[0] - began) * 1000)
            end_ms.append((ended - began) * 1000)

    cpu_s = time.process_time()
    await asyncio.gather(*(ask() for _ in range(clients)))
    cpu_s = time.process_time() - cpu_s
    return Result(name, clients, first_ms, end_ms, cpu_s / (clients * each) * 1e6)


async def _rounds(folder: Path, clients: int, each: int, rounds: int) -> list[Result]:
    found: list[list[Result]] = [[], []]
    journal = await Journal.open(folder / f"request-{clients}")
    ways: list[tuple[str, UsageJournal]] = [("none", NullJournal()), ("real", journal)]
    for _ in range(rounds):
        for row, (name, one) in enumerate(ways):
            found[row].append(await _serve(name, one, clients, each))
    await journal.close()
    return [_together(results) for results in found]


def _together(results: list[Result]) -> Result:
    return Result(
        results[0].journal,
        results[0].clients,
        [wait for result in results for wait in result.first_ms],
        [wait for result in results for wait in result.end_ms],
        sorted(result.cpu_us for result in results)[len(results) // 2],
    )


def measure(folder: Path, *, each: int, rounds: int) -> list[Result]:
    """With one client, and with 64 at once."""
    return [
        result
        for clients in (1, 64)
        for result in uvloop.run(_rounds(folder, clients, each, rounds))
    ]
