"""What the queue of a pool costs: the server's core for each step, and how soon a grant is heard,
as those who wait grow from 10 to 100,000.

`PYTHONPATH=. python benchmarks/pool_queue.py [--only steps,latency] [--quick]` prints tables. A
pool of 64 places on 4 workers is full all the while. Every figure is of short rounds on an embedded
Valkey; CPU time first, as a busy machine changes it least, and least of all the quickest tenth of
the rounds.
"""

import argparse
import asyncio
import itertools
import os
import random
import tempfile
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click
import uvloop

from benchmarks.admission import server, show
from gateway.adapters.pool_queue import AT_ONCE, RedisPoolQueue
from gateway.adapters.redis import RedisClient, connect_redis
from gateway.domain.queue.capacity import WorkerRoom
from gateway.domain.queue.tickets import Answer, Band, Granted, Queued
from gateway.serving.queue_ports import Wish

POOL = "llama-3.3-70b-instruct"
TTL_MS = 36_000_000
WAIT_MS = 3_600_000_000
WORKERS, PLACES = 4, 16
NO_CEILING = 2**53 - 1
SIZES = (10, 1_000, 10_000, 100_000)
TENANTS = (10, 1_000)
ROUNDS = 40
BATCH_SHARE = 0.3
"""Of those who wait."""


@dataclass
class Bench:
    """A server, a pool on it, and who has a place there."""

    server_pid: int
    redis: RedisClient
    queue: RedisPoolQueue
    tenants: int
    numbers: "itertools.count[int]" = field(default_factory=itertools.count)
    chance: random.Random = field(default_factory=lambda: random.Random(6))  # noqa: S311 - sizes
    running: deque[str] = field(default_factory=deque)
    granted: asyncio.Queue[tuple[str, float]] = field(default_factory=asyncio.Queue)
    waiting: list[str] = field(default_factory=list)

    def server_cpu_s(self) -> float:
        """Of the server's main thread so far."""
        path = Path(f"/proc/{self.server_pid}/task/{self.server_pid}/schedstat")
        return int(path.read_text().split()[0]) / 1e9

    async def listen(self) -> None:
        """Whom a grant reached, and when."""
        async for message in self.queue.messages():
            self.granted.put_nowait((message.ticket_id, time.perf_counter()))

    def wish(self) -> Wish:
        """One more request, of a size as chat has it."""
        number, chance = next(self.numbers), self.chance
        prompt, output = chance.randint(50, 4_000), chance.randint(20, 800)
        band = Band.BATCH if chance.random() < BATCH_SHARE else Band.INTERACTIVE
        return Wish(
            id=f"{number:032x}",
            tenant=f"ten_{number % self.tenants:010d}",
            band=band,
            sequences=1,
            need_tokens=prompt + output,
            cost=prompt + 2 * output,
            weight=chance.choice((1, 1, 2, 4)),
            wait_ms=WAIT_MS,
            promote_after_ms=WAIT_MS,
        )

    async def enter(self, _: int = 0) -> Answer:
        """One more that waits, or at first runs."""
        wish = self.wish()
        answer = await self.queue.enter(POOL, wish, max_queued=10**9)
        if isinstance(answer, Granted):
            self.running.append(wish.id)
        elif isinstance(answer, Queued):
            self.waiting.append(wish.id)
        else:
            raise TypeError(answer)  # else the figures mean something else
        return answer

    async def leave(self, _: int = 0) -> None:
        """One ends, so another is granted."""
        await self.queue.leave(POOL, self.running.popleft(), actual_cost=1_500)

    async def take_up(self, _: int = 0) -> None:
        """Whoever was granted takes it up."""
        ticket_id, _at = await self.granted.get()
        answer = await self.queue.take_up(POOL, ticket_id)
        if not isinstance(answer, Granted):
            raise TypeError(answer)
        await self.queue.began(POOL, ticket_id)
        self.running.append(ticket_id)

    async def renew(self, standing: bool) -> None:
        """As many as one script renews."""
        await self.queue.renew(POOL, self.waiting[-AT_ONCE:], standing=standing)

    async def fill(self, count: int) -> None:
        """Until so many wait."""
        while (missing := count - len(self.waiting)) > 0:
            await asyncio.gather(*(self.enter() for _ in range(min(missing, 64))))

    async def cpu_us(self, call: Callable[[int], Awaitable[object]], count: int) -> float:
        """Of the server's core for each of so many calls, eight at once."""
        before = self.server_cpu_s()
        for first in range(0, count, 8):
            await asyncio.gather(*(call(n) for n in range(first, min(first + 8, count))))
        return (self.server_cpu_s() - before) / count * 1e6


async def with_bench(tenants: int, work: Callable[[Bench], Awaitable[None]]) -> None:
    """Do it on a server of its own, with a pool that is full."""
    with tempfile.TemporaryDirectory() as folder, server(Path(folder)) as (pid, url):
        redis = connect_redis(url, timeout_ms=10_000)
        queue = RedisPoolQueue(redis, url=url, gateway="gw-1", ttl_ms=TTL_MS, timeout_ms=10_000)
        bench = Bench(pid, redis, queue, tenants)
        listener = asyncio.create_task(bench.listen())
        try:
            await queue.listening()
            rooms = [
                WorkerRoom(f"http://gpu-{n}:30000", PLACES, PLACES, NO_CEILING, 0)
                for n in range(WORKERS)
            ]
            await queue.report(POOL, rooms, well_ms=TTL_MS)
            for _ in range(WORKERS * PLACES):
                await bench.enter()
            for ticket_id in bench.running:
                await queue.began(POOL, ticket_id)
            await work(bench)
        finally:
            listener.cancel()
            await asyncio.gather(listener, return_exceptions=True)
            await redis.aclose()


async def measure_steps(tenants: int, sizes: Sequence[int], count: int) -> list[tuple[str, ...]]:
    """CPU of the server's core for each step, as those who wait grow."""
    rows: list[tuple[str, ...]] = []

    async def work(bench: Bench) -> None:
        nothing = bench.redis.register_script("return 1")
        empty = int((await bench.redis.info())[0]["used_memory"])
        for size in sizes:
            await bench.fill(size)
            memory = int((await bench.redis.info())[0]["used_memory"]) - empty
            steps: dict[str, Callable[[int], Awaitable[object]]] = {
                "nothing": lambda _: nothing(["k"], []),
                "enter": bench.enter,
                "leave": bench.leave,
                "take up": bench.take_up,
                "tick": lambda _: bench.queue.tick(POOL),
            }
            renewals: dict[str, Callable[[int], Awaitable[object]]] = {
                "renew": lambda _: bench.renew(standing=False),
                "standing": lambda _: bench.renew(standing=True),
            }
            names = (*steps, *renewals, "grant")
            rounds: dict[str, list[float]] = {name: [] for name in names}
            for _ in range(ROUNDS):
                for name, call in steps.items():
                    rounds[name].append(await bench.cpu_us(call, min(count, WORKERS * PLACES)))
                for name, call in renewals.items():
                    rounds[name].append(await bench.cpu_us(call, 1))
                of_grant = ("enter", "leave", "take up")
                rounds["grant"].append(sum(rounds[name][-1] for name in of_grant))
            for values in rounds.values():
                values.sort()
            low = {name: values[len(values) // 10] for name, values in rounds.items()}
            middle = rounds["grant"][ROUNDS // 2]
            renewed = min(AT_ONCE, len(bench.waiting))
            rows.append(
                (f"{size:,}", f"{tenants:,}",
                 *(f"{low[name]:.0f}" for name in ("nothing", "enter", "leave")),
                 f"{low['take up']:.0f}", f"{low['tick']:.0f}", f"{low['renew'] / renewed:.1f}",
                 f"{low['standing'] / renewed:.1f}",
                 f"{low['grant']:.0f}", f"{middle:.0f}", f"{1e6 / low['grant']:,.0f}",
                 f"{memory / size:,.0f}")
            )  # fmt: skip

    await with_bench(tenants, work)
    return rows


async def measure_latency(tenants: int, sizes: Sequence[int], count: int) -> list[tuple[str, ...]]:
    """How soon after a leave is sent the message of the grant is there."""
    rows: list[tuple[str, ...]] = []

    async def work(bench: Bench) -> None:
        for size in sizes:
            await bench.fill(size)
            took: list[float] = []
            for _ in range(count):
                await bench.enter()
                began = time.perf_counter()
                await bench.leave()
                ticket_id, at = await bench.granted.get()
                took.append(at - began)
                bench.granted.put_nowait((ticket_id, at))
                await bench.take_up()
            took.sort()
            p50, p99 = took[len(took) // 2], took[len(took) * 99 // 100]
            tenth = took[: max(1, len(took) // 10)]
            rows.append(
                (f"{size:,}", f"{tenants:,}", f"{tenth[-1] * 1000:.2f}", f"{p50 * 1000:.2f}",
                 f"{p99 * 1000:.2f}")
            )  # fmt: skip

    await with_bench(tenants, work)
    return rows


async def run(only: set[str], quick: bool) -> None:
    """All that was asked for."""
    sizes = SIZES[:2] if quick else SIZES
    click.echo(f"load averages {os.getloadavg()}")
    if "steps" in only:
        rows = [row for n in TENANTS for row in await measure_steps(n, sizes, 16 if quick else 64)]
        show(
            "What a step costs the server's core, µs, least disturbed tenth",
            ("waiting", "tenants", "a script that does nothing", "enter, queued",
             "leave, another granted", "take up and began", "tick", "renew, an id",
             "and where it stands",
             "a grant's steps together", "median", "grants/s of the core", "bytes a ticket"),
            rows,
        )  # fmt: skip
    if "latency" in only:
        rows = [
            row for n in TENANTS for row in await measure_latency(n, sizes, 50 if quick else 500)
        ]
        show(
            "From a leave to the message of the grant, ms",
            ("waiting", "tenants", "p10", "p50", "p99"),
            rows,
        )
    click.echo(f"\nload averages {os.getloadavg()}")


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="steps,latency", help="Which tables.")
    parser.add_argument("--quick", action="store_true", help="To see that it runs.")
    arguments = parser.parse_args()
    uvloop.run(run(set(arguments.only.split(",")), arguments.quick))


if __name__ == "__main__":
    main()
